// SPDX-License-Identifier: BSD-3-Clause
// Role: see block_lock.hpp. How the lock works, and why:
//
// Each block has a lock without a fixed place. Every node keeps one word of it: `unlocked` (free,
// and here), `locked` (held by a thread here, or on its way here), `locked + successor` (as well,
// and that node is next), or `link(node)` (it went that way). Zero is a link to the initial home,
// so the words of a block that no thread has used need not exist. A chaser that follows links from
// any word comes to the one node whose word is no link: the end of the chain.
//
// Taking it. Free here: one compare-and-swap of the own word. Otherwise the own word becomes
// `locked` first. From then on others who come here by old links queue behind this node, although
// the lock is still elsewhere: the chain grows at its end and cannot close to a circle. Then the
// chase: at each node the own number is put into what is found there, by compare-and-swap.
// `unlocked` becomes link(self): the lock is taken, and its token {home, wts, rts} lies there.
// `locked` becomes `locked + self`: queued, the holder will hand over. Anything else names the next
// node. The first compare-and-swap at each node expects `unlocked`, which is what it finds most
// often; a miss costs nothing but the answer, which says how to go on.
//
// Why a busy word is no hint. A link may be replaced by a shorter way. `locked + successor` may
// not: it is the only place where the queue remembers who is next. Overwritten, that node waits for
// ever (planted: busy_link_shortened).
//
// Opening it. The token is written to the own words, then `locked` becomes `unlocked`. If that
// fails a successor has come: the own word becomes link(successor) by a plain store, since nobody
// else changes a busy word that has a successor, and the token is put into the successor's words,
// the home's with the grant bit last. The successor polls its own memory for that bit.
//
// A lock that moves faster than it is chased. After `hops_before_message_` links the request
// becomes a message, forwarded by each node's handler along its own link. It takes one way to each
// node, where a chase takes two, and finds the word where it arrives. A handler may not wait for a
// remote store, so where it finds the lock free it sends the token as a message.
//
// Leases. Readers need not take the lock: they read at the home and raise `rts` by a
// compare-and-swap on the lease word, which carries an open bit. A taker of the lock closes that
// word first (fetch-or), and gets with it all the time that readers were given; the next write lies
// behind it (invariant 3). The node that loses the lock is marked (MovedBlocks): its copy needed no
// lease while it was the home's, and does from now on. Both happen before the taker can write, so
// no acquire that has to know of the write can miss the mark (invariant 6).
//
// Waiting. A thread waits for one block at a time and holds no other (invariant 10), and a holder
// waits for no successor: the queue always moves. The latch of the block, which the caller holds,
// keeps the other threads of the node out: each node is in a queue at most once.
#include "dsm/block/block_lock.hpp"

#include <array>
#include <cstring>

#include "dsm/messages.hpp"

namespace hiroba::dsm {

namespace {
/// The word that says whose copy is the newest: its number plus one, 0: the initial home's.
constexpr std::uint64_t home_word(NodeId home) { return home.value + std::uint64_t{1}; }
/// In that word: a former holder has handed the lock over, and written the rest before.
constexpr std::uint64_t granted_bit = std::uint64_t{1} << 63;
}  // namespace

BlockLock::BlockLock(net::Endpoint& endpoint, gas::Segment& records, MovedBlocks& moved,
                     const AddressMap& map, unsigned hops_before_message)
    : endpoint_(endpoint),
      records_(records),
      moved_(moved),
      map_(map),
      self_(endpoint.self()),
      hops_before_message_(hops_before_message) {
    endpoint.on(message::lock_chase, &BlockLock::on_chase, this);
    endpoint.on(message::lock_handover, &BlockLock::on_handover, this);
}

NodeId BlockLock::initial_home(BlockId block) const noexcept {
    return map_.initial_home(std::uint64_t{block} * map_.shape().block_bytes);
}

NodeId BlockLock::home_of(BlockId block, std::uint64_t word) const noexcept {
    const std::uint64_t home = word & ~granted_bit;
    return home == 0 ? initial_home(block) : NodeId{static_cast<std::uint32_t>(home - 1)};
}

LockToken BlockLock::token_of(BlockId block, const std::uint64_t words[3]) const noexcept {
    const auto lease = LeaseWord::from_raw(words[2]);
    return {home_of(block, words[0]), Timestamp{words[1]}, lease.rts(), lease.was_read(),
            lease.is_sole()};
}

LockToken BlockLock::read_token(NodeId at, BlockId block) noexcept {
    std::uint64_t words[3];
    records_.get(word(at, block, token_at), std::as_writable_bytes(std::span{words}));
    return token_of(block, words);
}

void BlockLock::write_own_token(BlockId block, NodeId home, Timestamp wts,
                                LeaseWord lease) noexcept {
    const std::uint64_t words[2] = {home_word(home), wts.value};
    records_.put(word(self_, block, token_at), std::as_bytes(std::span{words}));
    // Last: from here on readers may find this copy, and extend.
    records_.store(word(self_, block, lease_at), lease.raw());
}

/// With the lock: no reader gets anything here from now on. Returns what they were given.
LeaseWord BlockLock::close_own_lease(BlockId block) noexcept {
    return LeaseWord::from_raw(
        records_.fetch_or(word(self_, block, lease_at), LeaseWord::closing_bit));
}

bool BlockLock::try_lock_here(BlockId block, LockToken& token) noexcept {
    const NodeId first = initial_home(block);
    const auto own = LinkWord::from_raw(records_.load(word(self_, block, link_at)));
    if (own.kind(self_, first) != LinkWord::Kind::unlocked) return false;
    if (records_.compare_swap(word(self_, block, link_at), own.raw(), LinkWord::locked().raw()) !=
        own.raw()) {
        return false;
    }
    close_own_lease(block);
    token = read_token(self_, block);
    return true;
}

bool BlockLock::is_here(BlockId block) noexcept {
    const auto own = LinkWord::from_raw(records_.load(word(self_, block, link_at)));
    if (own.kind(self_, initial_home(block)) != LinkWord::Kind::unlocked) return false;
    // A lock that was given back here is not with the home.
    return home_of(block, records_.load(word(self_, block, token_at))) == self_;
}

Timestamp BlockLock::rts_when_it_went(BlockId block) noexcept {
    // A lock that was given back here tells of another node's copy.
    if (home_of(block, records_.load(word(self_, block, token_at))) != self_) return {};
    return LeaseWord::from_raw(records_.load(word(self_, block, lease_at))).rts();
}

// No word is changed on the way, so any node will do to begin with: nothing is said but what the
// home's own words say.
std::optional<BlockLock::HomeView> BlockLock::find_home(BlockId block, std::optional<NodeId> start,
                                                        PublicCopies::Reading* along,
                                                        bool may_wait) noexcept {
    using Access = gas::Segment::Access;
    const NodeId first = initial_home(block);
    NodeId at = start.value_or(self_);
    for (unsigned hops = 0; hops <= hops_usual; ++hops) {
        std::uint64_t words[lease_at / 8 + 1];
        static_assert(link_at == 0);
        const MutableBytes seen = std::as_writable_bytes(std::span{words});
        if (along != nullptr && records_.in_one_exchange(at)) {
            const auto copy = along->list();
            std::array list{Access::get(records_, word(at, block, link_at).offset, seen), copy[0],
                            copy[1], copy[2]};
            gas::Segment::in_order(at, list);
            along->made_at(at);
        } else {
            records_.get(word(at, block, link_at), seen);
        }
        // The fence orders the reads at the home that follow behind this one.
        std::atomic_thread_fence(std::memory_order_acquire);
        const auto link = LinkWord::from_raw(words[0]);
        const auto lease = LeaseWord::from_raw(words[lease_at / 8]);
        switch (link.kind(at, first)) {
            case LinkWord::Kind::unlocked:
                if (!lease.is_open()) return std::nullopt;
                return HomeView{at, lease};
            case LinkWord::Kind::untouched:
            case LinkWord::Kind::link: at = link.node(first); break;
            case LinkWord::Kind::locked:
            case LinkWord::Kind::locked_with_successor:
                if (!lease.is_kept() || !may_wait || at == self_) return std::nullopt;
                wait_until_open(at, block);
                break;
        }
    }
    return std::nullopt;
}

NodeId BlockLock::first_stop(BlockId block, std::optional<NodeId> start) noexcept {
    return start ? *start : went_to(block).value_or(initial_home(block));
}

gas::Segment::Access BlockLock::look_for_home(BlockId block, HomeWords& words) noexcept {
    static_assert(link_at == 0 && lease_at + 8 == sizeof words);
    return gas::Segment::Access::get(records_, word(self_, block, link_at).offset,
                                     std::as_writable_bytes(std::span{words}));
}

std::optional<BlockLock::HomeView> BlockLock::home_in(NodeId at, BlockId block,
                                                      const HomeWords& words) const noexcept {
    const auto lease = LeaseWord::from_raw(words[lease_at / 8]);
    const auto kind = LinkWord::from_raw(words[0]).kind(at, initial_home(block));
    if (kind != LinkWord::Kind::unlocked || !lease.is_open()) return std::nullopt;
    return HomeView{at, lease};
}

gas::Segment::Access BlockLock::extension(BlockId block, const HomeView& home,
                                          Timestamp rts) noexcept {
    return gas::Segment::Access::compare_swap(records_, word(home.node, block, lease_at).offset,
                                              home.lease.raw(),
                                              LeaseWord::open_and_read(rts).raw());
}

// The word says the same as when it was seen, and only rises: the lock has not been taken between.
bool BlockLock::extend(BlockId block, const HomeView& home, Timestamp rts) noexcept {
    const std::uint64_t seen = home.lease.raw();
    return records_.compare_swap(word(home.node, block, lease_at), seen,
                                 LeaseWord::open_and_read(rts).raw()) == seen;
}

std::optional<NodeId> BlockLock::went_to(BlockId block) noexcept {
    const NodeId first = initial_home(block);
    const auto own = LinkWord::from_raw(records_.load(word(self_, block, link_at)));
    if (own.kind(self_, first) != LinkWord::Kind::link) return std::nullopt;
    return own.node(first);
}

LockToken BlockLock::lock(BlockId block, PublicCopies::Reading* along) noexcept {
    LockToken token;
    if (try_lock_here(block, token)) return token;
    Chased chased = begin(block);
    return finish(chased, along);
}

bool BlockLock::is_free_here(BlockId block) noexcept {
    const auto own = LinkWord::from_raw(records_.load(word(self_, block, link_at)));
    return own.kind(self_, initial_home(block)) == LinkWord::Kind::unlocked;
}

// From here on others that arrive here by old links queue behind us, although the lock is still
// elsewhere: listing 1 of the paper. The latch keeps our other threads out. Most often the lock is
// free at the end of the first link: no word is looked at beforehand.
BlockLock::Chased BlockLock::begin(BlockId block) noexcept {
    const auto own =
        LinkWord::from_raw(records_.swap(word(self_, block, link_at), LinkWord::locked().raw()));
    Chased chased;
    chased.block = block;
    chased.at = own.node(initial_home(block));
    return chased;
}

/// Decides from the word that was found how the chase goes on. Returns false if it was the expected
/// word: the chase is over.
bool BlockLock::goes_on(Chased& chased, LinkWord seen) const noexcept {
    if (seen == chased.expected) return false;
    const Chase next = chase(seen, chased.at, initial_home(chased.block));
    chased.takes = next.what != Chase::Do::queue;
    chased.expected = seen;
    if (next.what == Chase::Do::follow) {
        chased.at = next.next;
        chased.expected = LinkWord::unlocked();
        ++chased.hops;
    }
    return true;
}

LockToken BlockLock::take_over(BlockId block, const std::uint64_t (&words)[3]) noexcept {
    const LockToken token = token_of(block, words);
    write_own_token(block, token.home, token.wts, LeaseWord::closed(token.rts, token.read));
    return token;
}

LockToken BlockLock::finish(Chased& chased, PublicCopies::Reading* along) noexcept {
    const BlockId block = chased.block;
    while (chased.hops < hops_before_message_) {
        HIROBA_INVARIANT(chased.at != self_, "block %u: the chase came back (invariant 1)", block);
        const auto mine =
            chased.takes ? LinkWord::link(self_) : LinkWord::locked_with_successor(self_);
        std::uint64_t words[3] = {};
        const LinkWord seen =
            exchange(chased.at, block, chased.expected, mine, chased.takes, words, along);
        if (goes_on(chased, seen)) continue;
        return chased.takes ? take_over(block, words) : wait_for_grant(block, chased.at);
    }
    forwarded_.fetch_add(1, std::memory_order_relaxed);
    const ChaseMessage request{block, self_.value};
    const Bytes part = std::as_bytes(std::span{&request, 1});
    endpoint_.send(chased.at, message::lock_chase, net::Urgency::wake_service, {&part, 1});
    return wait_for_grant(block, std::nullopt);
}

/// Changes the word at `at` from `expected` to `mine`; returns what it found. If it was `expected`,
/// `token` is what lies there; if that took the lock, the lease there is closed and the block
/// marked as moved. Far away all of it, with `along`, is one exchange, and where the lock was not
/// taken the lease may have been closed for nothing: readers then take the lock.
LinkWord BlockLock::exchange(NodeId at, BlockId block, LinkWord expected, LinkWord mine, bool takes,
                             std::uint64_t (&token)[3], PublicCopies::Reading* along) noexcept {
    using Access = gas::Segment::Access;
    const MutableBytes words = std::as_writable_bytes(std::span{token});
    if (!records_.in_one_exchange(at)) {
        const auto seen = LinkWord::from_raw(
            records_.compare_swap(word(at, block, link_at), expected.raw(), mine.raw()));
        if (seen != expected || !takes) return seen;
        records_.fetch_or(word(at, block, lease_at), LeaseWord::closing_bit);
        records_.get(word(at, block, token_at), words);
        moved_.mark(at, block);
        return seen;
    }
    const auto swing =
        Access::compare_swap(records_, word(at, block, link_at).offset, expected.raw(), mine.raw());
    if (!takes) {
        std::array list{swing};
        gas::Segment::in_order(at, list);
        return LinkWord::from_raw(list[0].found);
    }
    const auto marks = moved_.accesses(block);
    std::array taking{
        swing,
        Access::fetch_or(records_, word(at, block, lease_at).offset, LeaseWord::closing_bit),
        Access::get(records_, word(at, block, token_at).offset, words),
        marks[0],
        marks[1],
        marks[2]};
    if (along == nullptr) {
        gas::Segment::in_order(at, taking);
        return LinkWord::from_raw(taking[0].found);
    }
    const auto copy = along->list();
    std::array with_copy{taking[0], taking[1], taking[2], taking[3], taking[4],
                         taking[5], copy[0],   copy[1],   copy[2]};
    gas::Segment::in_order(at, with_copy);
    const auto seen = LinkWord::from_raw(with_copy[0].found);
    if (seen == expected) along->made_at(at);  // read under the lock
    return seen;
}

// A keeper of a lock sets its bit before it looks for a successor, and a successor queues before it
// looks here: one of the two sees the other.
bool BlockLock::keep(BlockId block) noexcept {
    records_.fetch_or(word(self_, block, lease_at), LeaseWord::keeping_bit);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return LinkWord::from_raw(records_.load(word(self_, block, link_at))) == LinkWord::locked();
}

bool BlockLock::is_kept_at(NodeId holder, BlockId block) noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with keep()
    return LeaseWord::from_raw(records_.load(word(holder, block, lease_at))).is_kept();
}

namespace {
// A request may come while the block is on its way into or out of that state, or in the place of
// another thread's of this node: it is made again.
constexpr std::uint64_t between_requests_ns = 200'000;
}  // namespace

// Nothing that the holder needs is held here: it opens the lock by itself.
void BlockLock::wait_until_open(NodeId holder, BlockId block) noexcept {
    Backoff backoff;
    for (std::uint64_t ask_at_ns = 0; is_kept_at(holder, block);) {
        const std::uint32_t seen = keeper_->answers();
        if (now_ns() >= ask_at_ns) {
            keeper_->ask_for(holder, block);
            ask_at_ns = now_ns() + between_requests_ns;
        }
        endpoint_.poll();
        keeper_->wait();
        // Where a look is an exchange, it takes the time of who is to answer.
        if (records_.in_one_exchange(holder)) keeper_->await_answer(seen, ask_at_ns);
        backoff.pause();
    }
}

// A busy word that has a successor stays as it is until that is granted the lock. Empty: the
// request is on its way yet, or the lock is.
std::optional<NodeId> BlockLock::find_predecessor(BlockId block) noexcept {
    for (std::uint32_t node = 0; node < map_.shape().nodes; ++node) {
        const auto seen = records_.load(word(NodeId{node}, block, link_at));
        if (seen == LinkWord::locked_with_successor(self_).raw()) return NodeId{node};
    }
    return std::nullopt;
}

/// @param holder  whom this node has queued behind; empty: a message has done so, and has told
///                the holder once
LockToken BlockLock::wait_for_grant(BlockId block, std::optional<NodeId> holder) noexcept {
    Backoff backoff;
    std::uint64_t home;
    std::uint64_t ask_at_ns = holder ? 0 : now_ns() + between_requests_ns;
    while (((home = records_.load(word(self_, block, token_at))) & granted_bit) == 0) {
        if (now_ns() >= ask_at_ns) {
            // Another thread of this node may have asked the holder for another block since.
            if (!holder) holder = find_predecessor(block);
            if (holder && is_kept_at(*holder, block)) keeper_->ask_for(*holder, block);
            ask_at_ns = now_ns() + between_requests_ns;
        }
        // The holder waits for nobody else's block with this one, so this ends; a lost peer ends
        // the job.
        if (backoff.yields() > 0) {
            endpoint_.poll();
            if (keeper_ != nullptr) keeper_->wait();
        }
        backoff.pause();
    }
    records_.store(word(self_, block, token_at), home & ~granted_bit);
    return read_token(self_, block);
}

void BlockLock::grant(BlockId block, NodeId to, const LockToken& token) noexcept {
    std::uint64_t words[2] = {token.wts.value, LeaseWord::closed(token.rts, token.read).raw()};
    using Access = gas::Segment::Access;
    Access list[] = {Access::put(records_, word(to, block, wts_at).offset,
                                 std::as_writable_bytes(std::span{words})),
                     Access::store(records_, word(to, block, token_at).offset,
                                   home_word(token.home) | granted_bit)};
    gas::Segment::in_order(to, list);
}

void BlockLock::unlock(BlockId block, const LockToken& token) noexcept {
    HIROBA_INVARIANT(token.wts <= token.rts, "block %u: wts %lu, rts %lu (invariant 2)", block,
                     token.wts.value, token.rts.value);
    // A holder that published nothing leaves the trace of the nodes that have read the version.
    // Where the home has moved with its version, the last home has a copy, too.
    const bool read = token.read || (token.home != self_ && !token.sole);
    open(block, {self_, token.wts, token.rts, read}, LeaseWord::open(token.rts, read));
}

// A node that never had the lock is at the end of no link: while its own word is busy no other
// queues here, and it can be put back.
bool BlockLock::try_lock_untouched(BlockId block) noexcept {
    const NodeId home = initial_home(block);
    const gas::GlobalAddress own = word(self_, block, link_at);
    const std::uint64_t untouched = LinkWord{}.raw();
    const auto lease = [&] {
        return LeaseWord::from_raw(records_.load(word(home, block, lease_at)));
    };
    if (records_.load(own) != untouched || !lease().is_untouched()) return false;
    std::uint64_t words[3] = {};
    if (home == self_) {
        if (records_.compare_swap(own, untouched, LinkWord::locked().raw()) != untouched)
            return false;
        close_own_lease(block);
        records_.get(word(self_, block, token_at), std::as_writable_bytes(std::span{words}));
    } else {
        records_.store(own, LinkWord::locked().raw());
        if (exchange(home, block, LinkWord{}, LinkWord::link(self_), true, words, nullptr) !=
            LinkWord{}) {
            records_.store(own, untouched);
            return false;
        }
    }
    const LockToken token = take_over(block, words);
    if (LeaseWord::from_raw(words[2]).is_untouched()) return true;
    unlock(block, token);  // a reader came before it was closed, of the same bytes
    return false;
}

void BlockLock::unlock_sole(BlockId block, const LockToken& token) noexcept {
    open(block, {self_, token.wts, token.rts}, LeaseWord::open_and_sole(token.rts));
}

// The own word is busy during the exchange, as in begin(). No node has queued behind it most often,
// and it can be put back.
std::optional<LockToken> BlockLock::try_lock_sole(BlockId block, const HomeView& home) noexcept {
    Chased chased = begin(block);
    const LinkWord before = LinkWord::link(chased.at);
    std::uint64_t words[3] = {};
    if (exchange(home.node, block, LinkWord::unlocked(), LinkWord::link(self_), true, words,
                 nullptr) == LinkWord::unlocked())
        return take_over(block, words);
    if (records_.compare_swap(word(self_, block, link_at), LinkWord::locked().raw(),
                              before.raw()) == LinkWord::locked().raw())
        return std::nullopt;
    return finish(chased);
}

// The lock's taker closes the word first: one of the two sees the other.
bool BlockLock::touch(BlockId block) noexcept {
    const auto at = word(self_, block, lease_at);
    const auto lease = LeaseWord::from_raw(records_.load(at));
    if (!lease.is_open() || (!lease.is_untouched() && !lease.is_sole())) return lease.is_open();
    // Untouched: writes a time that no reader was given. No reader's trace: there is none of this
    // node's own copy.
    const Timestamp rts = lease.is_sole() ? lease.rts() : Timestamp{1};
    const std::uint64_t seen = records_.compare_swap(at, lease.raw(), LeaseWord::open(rts).raw());
    return LeaseWord::from_raw(seen).is_open();
}

// Readers find the lease closed, so they take the lock, and with it find the home.
void BlockLock::give_back(BlockId block, const LockToken& token) noexcept {
    open(block, token, LeaseWord::closed(token.rts, token.read));
}

void BlockLock::open(BlockId block, const LockToken& token, LeaseWord lease) noexcept {
    write_own_token(block, token.home, token.wts, lease);
    const auto locked = LinkWord::locked();
    const auto seen = LinkWord::from_raw(records_.compare_swap(
        word(self_, block, link_at), locked.raw(), LinkWord::unlocked().raw()));
    if (seen == locked) return;
    const NodeId first = initial_home(block);
    HIROBA_INVARIANT(seen.kind(self_, first) == LinkWord::Kind::locked_with_successor,
                     "block %u: word %lx at unlock (invariant 1)", block, seen.raw());
    const NodeId next = seen.node(first);
    // No other node changes a busy word that has a successor: a plain store is enough.
    records_.store(word(self_, block, link_at), LinkWord::link(next).raw());
    const LeaseWord given = close_own_lease(block);
    moved_.mark(self_, block);
    grant(block, next, {token.home, token.wts, given.rts(), given.was_read()});
}

void BlockLock::on_chase(void* self, NodeId, Bytes body) noexcept {
    ChaseMessage request;
    HIROBA_INVARIANT(body.size() == sizeof request, "lock_chase of %lu bytes", body.size());
    std::memcpy(&request, body.data(), sizeof request);
    static_cast<BlockLock*>(self)->forward(request);
}

// The requester's next hop, taken at this node: it either ends here or goes on as a message.
void BlockLock::forward(ChaseMessage request) noexcept {
    const BlockId block = request.block;
    const NodeId requester{request.requester};
    const NodeId first = initial_home(block);
    for (;;) {
        const auto seen = LinkWord::from_raw(records_.load(word(self_, block, link_at)));
        const Chase next = chase(seen, self_, first);
        if (next.what == Chase::Do::follow) {
            const Bytes part = std::as_bytes(std::span{&request, 1});
            endpoint_.send(next.next, message::lock_chase, net::Urgency::wake_service, {&part, 1});
            return;
        }
        const auto word_for_requester = next.what == Chase::Do::take
                                            ? LinkWord::link(requester)
                                            : LinkWord::locked_with_successor(requester);
        if (records_.compare_swap(word(self_, block, link_at), seen.raw(),
                                  word_for_requester.raw()) != seen.raw()) {
            continue;
        }
        if (next.what == Chase::Do::take) {
            grant_by_message(block, requester);
        } else if (is_kept_at(self_, block)) {
            keeper_->wanted(requester, block);
        }
        return;
    }
}

void BlockLock::grant_by_message(BlockId block, NodeId to) noexcept {
    HandoverMessage message{block, {}};
    close_own_lease(block);
    moved_.mark(self_, block);
    records_.get(word(self_, block, token_at), std::as_writable_bytes(std::span{message.words}));
    // Zero stands for the initial home here only: say who it is.
    message.words[0] = home_word(token_of(block, message.words).home);
    const Bytes part = std::as_bytes(std::span{&message, 1});
    endpoint_.send(to, message::lock_handover, net::Urgency::wake_service, {&part, 1});
}

void BlockLock::on_handover(void* self, NodeId, Bytes body) noexcept {
    HandoverMessage message;
    HIROBA_INVARIANT(body.size() == sizeof message, "lock_handover of %lu bytes", body.size());
    std::memcpy(&message, body.data(), sizeof message);
    auto& lock = *static_cast<BlockLock*>(self);
    const auto block = static_cast<BlockId>(message.block);
    lock.records_.put(lock.word(lock.self_, block, wts_at),
                      std::as_bytes(std::span{message.words}.subspan(1)));
    lock.records_.store(lock.word(lock.self_, block, token_at), message.words[0] | granted_bit);
}

}  // namespace hiroba::dsm
