// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks that only this node uses: no release looks at them, nobody is told of their writes
// (docs/protocol.md#exclusive).
// Invariant: while a block is exclusive here, this node has its lock and is its home, and no other
// node has a readable copy or may get one by a notice (invariant 15). A node that waits for such a
// block waits for a thread that takes latches by trying only, so that no wait for a block is part
// of a cycle.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/messages.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

namespace {
// A block that others read must go unread for 1, 2, 4 or 8 versions in a row before it is taken for
// this node's own. Then it is tried once in a while, ever less often while that is in vain.
constexpr std::uint8_t patience_usual = 4;
constexpr std::uint8_t patience_max = 9;
constexpr std::uint32_t untried_min = 16;
constexpr std::uint8_t visits_forgiven = 4;
// A block that was exclusive for so many releases was worth it, though somebody wants it now.
constexpr ReleaseNumber long_life = 2048;
// Where nobody had to ask for it, a short life pays.
constexpr ReleaseNumber short_life = 4;

// Given up so many times behind one place before anybody asked, and in vain, of a block that a node
// has asked for once, or that was only near such a one: what is asked for behind that costs a
// release, what is given up in vain some merges.
constexpr unsigned vain_max = VainGiveUps::count_max, vain_near_max = 1;
constexpr std::uint8_t run_idle_max = 64;  // so often in a row there was nothing of it to give up

bool is_to_be_kept(const Trial& trial, std::uint8_t place) noexcept {
    return trial.vain.behind(place) >= (trial.asked ? vain_max : vain_near_max);
}

/// Another node has come for the block, or reads it.
void note_wanted(Trial& trial) noexcept {
    if (std::exchange(trial.ahead, false)) trial.vain.clear(trial.ahead_at);
}

std::uint32_t untried_versions(std::uint8_t patience) noexcept {
    return patience < patience_usual ? 0 : untried_min << (patience - patience_usual);
}

// A block that is written by one release after the other needs 4, 8 .. 64 unread versions: the
// patience above is for blocks that are written now and then.
constexpr std::uint8_t streak_min = 4;
constexpr std::uint8_t streak_patience_max = 4;
constexpr ReleaseNumber streak_gap = 2;   // releases from one version to the next, at most
constexpr ReleaseNumber streak_life = 8;  // so many releases without it are worth being asked

constexpr std::uint8_t streak_wanted(const Trial& trial) {
    return static_cast<std::uint8_t>(streak_min << trial.streak_patience);
}
void raise(std::uint8_t& patience, std::uint8_t max) noexcept {
    if (patience < max) ++patience;
}
bool is_streak(const Trial& trial) noexcept { return trial.streak >= streak_wanted(trial); }

}  // namespace

// Before the public copy changes. With the block's latch and lock.
void Node::note_streak(BlockId block, const LockToken& token) noexcept {
    Trial& trial = entries_[block].trial;
    const Stamp own = copies_.own_stamp(block);
    const ReleaseNumber now = release_.number();  // with the release role
    const bool goes_on = token.home == self_ && !token.read && !own.is_none() &&
                         own.writer() == self_ && now <= own.release() + streak_gap;
    if (!goes_on) {
        trial.streak = 0;
    } else if (trial.streak < UINT8_MAX) {
        ++trial.streak;
    }
}

// A notice without a lease sends every reader to the home, where it leaves a trace. When each node
// knows the notice, so that none has an older copy or notice, and there is no trace, nobody else
// reads the block. With the block's latch and lock, about the version that is being published.
bool Node::is_to_be_tried(BlockEntry& entry, const LockToken& token) noexcept {
    Trial& trial = entry.trial;
    const bool was_tried = trial.wts != Timestamp{};
    trial.wts = {};
    if (!options_.exclusive) return false;
    if (token.home != self_ || token.read) {
        note_wanted(trial);
        trial.unread = 0;
        if (was_tried) raise(trial.patience, patience_max);
    } else if (trial.unread < UINT16_MAX) {
        ++trial.unread;
    }
    // The block has wandered here. A block that wanders is never unread for long: a node that wants
    // it may have learned to say so before.
    if (token.home != self_) {
        if (trial.patience > 0 && ++trial.visits >= visits_forgiven) {
            trial.visits = 0;
            --trial.patience;
        }
        return trial.proven;
    }
    if ((was_tried && !token.read) || is_streak(trial)) return true;
    if (trial.unread < untried_versions(trial.patience)) return false;
    if (trial.patience >= patience_usual) trial.unread = 0;
    return true;
}

// About the version `wts`, which is being published, by a release or by an atomic. A node that
// knows of the first of several such versions goes to the home, and leaves a trace, for each of
// them. With the block's latch and lock.
Node::Tried Node::try_version(BlockEntry& entry, const LockToken& token, Timestamp wts) noexcept {
    Trial& trial = entry.trial;
    if (token.home != self_ || token.read) trial.streak = 0;  // of releases; an atomic ends it, too
    const bool goes_on =
        trial.wts != Timestamp{} && trial.wts == token.wts && token.home == self_ && !token.read;
    if (!is_to_be_tried(entry, token)) return Tried::no;
    trial.wts = wts;
    return goes_on ? Tried::again : Tried::first;
}

// Whether this node is the home of a version that nobody has read, as far as can be seen without
// waiting. With the block's latch.
bool Node::is_unread(BlockId block) noexcept {
    LockToken token;
    // is_here() first: most often it says already what the lock would.
    if (!options_.exclusive || !lock_.is_here(block) || !lock_.try_lock_here(block, token))
        return false;
    const bool at_home = token.home == self_;
    at_home ? lock_.unlock(block, token) : lock_.give_back(block, token);
    return at_home && !token.read;
}

// With the block's latch and lock.
bool Node::may_be_exclusive(BlockId block, const LockToken& token) noexcept {
    const BlockEntry& entry = entries_[block];
    const Trial& trial = entry.trial;
    if (release_.hides_written() || !sealed_.lets_writes(block)) return false;
    return trial.wts != Timestamp{} && token.wts == trial.wts && token.home == self_ &&
           !token.read &&
           (is_streak(trial) ||
            trial.unread + 1u >= 1u << std::min(trial.patience, patience_usual)) &&
           (entry.state == BlockState::writable || is_pinned(offset_of(block))) &&
           entry.pins == 0 && !entry.early && !entry.held_back && !entry.stale.pinned &&
           news_.all_know(trial.by);
}

// With the latch. Atomics that go by there are over before this returns, and noted.
void Node::close_to_atomics(BlockId block) noexcept {
    AtomicUse& use = entries_[block].atomics;
    use.noted = 0;
    if (!std::exchange(use.is_open, false)) return;
    const AddressRange range = program_range(block);
    entries_.passes().close(range);
    entries_.passes().await_none(range);
    note_passed(block);
}

// With the block's latch. A stack stays accessible whatever others do to it.
void Node::share_again(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    close_to_atomics(block);
    entry.state = take(entry, BlockEvent::wanted).next;
    if (is_pinned(offset_of(block))) entry.state = take(entry, BlockEvent::pinned_fault).next;
}

// With the block's latch and lock. False: somebody wants it already.
bool Node::make_exclusive(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    // Other nodes may have to be told of this node's writes up to this release, as a race. Before
    // another thread's release passes by the block: it ends their epoch.
    races_.note_own_changes(block, private_copy(block), twin_of(block));
    // Before anybody can ask: who asks for what is not exclusive is not heard.
    entry.state = take(entry, BlockEvent::unread).next;
    if (!lock_.keep(block)) {
        share_again(block);
        return false;
    }
    entry.trial.exclusive_since = races_.this_change().epoch;
    engine_->leave_untracked(program_range(block));
    entry.trial.wts = {};
    if (std::exchange(entry.trial.ahead, false)) entry.trial.vain.raise(entry.trial.ahead_at);
    note_wandering(entry.trial, false);
    entry.trial.by = release_.number();  // with the release role
    entry.trial.as_taken = false;
    if (hands_over_all()) guess_.wanted.expected().note_miss(block);
    count(&PlaceCounters::made_exclusive);
    trace("dsm.exclusive", block);
    record(RecordKind::exclusive, program_range(block).address);
    return true;
}

// How long it was exclusive says how soon it will be tried again.
void Node::note_life(Trial& trial, GiveUp when) const noexcept {
    const ReleaseNumber lived = release_.number() - trial.by;  // a hint
    const bool ahead = when == GiveUp::ahead;
    trial.unread = 0;
    if (when == GiveUp::near) {
        trial.proven = false;  // no other node has asked for it
    } else if (is_streak(trial)) {
        trial.proven = lived >= (ahead ? short_life : streak_life);
        if (!trial.proven) {
            raise(trial.streak_patience, streak_patience_max);
        } else if (trial.streak_patience > 0) {
            --trial.streak_patience;
        }
    } else {
        trial.proven = lived >= (ahead ? short_life : long_life);
        trial.patience =
            trial.proven ? 0 : std::min<std::uint8_t>(trial.patience + 2, patience_max);
    }
    trial.streak = 0;
    trial.ahead = ahead;
    trial.ahead_at = guess_.wanted.place();
    if (!ahead) trial.vain.clear(trial.ahead_at);
}

// With the latch. Tracked before it is looked at: what comes later is reported, and what was
// written before it as well.
bool Node::give_up(BlockId block, GiveUp when) noexcept {
    share_again(block);
    engine_->track(program_range(block));
    const bool asked = when == GiveUp::wanted || when == GiveUp::near;
    if (!asked || !is_as_taken(block)) {
        lock_.unlock(block, publish_given_up(block, when));
        return true;
    }
    give_back(block);
    return false;
}

// With the latch, the block being tracked again.
void Node::give_back(BlockId block) noexcept {
    Trial& trial = entries_[block].trial;
    note_life(trial, GiveUp::wanted);
    trial.wanders = false;  // two nodes write it
    count(&PlaceCounters::given_up);
    trace("dsm.give_back", block);
    lock_.unlock(block, lock_.held_token(block));
}

// With the latch. What this node has written since it took the block no release need have told of:
// the public copy, of that time, is what other nodes may read until one does. One that begins
// behind this look finds the block tracked.
bool Node::is_as_taken(BlockId block) const noexcept {
    const Trial& trial = entries_[block].trial;
    return trial.as_taken && release_.numbers().is_last(trial.by);
}

// With the latch. The release that begins next may have begun: then it is no longer as taken. One
// under way looks again for what is written meanwhile, and passes by a block that is exclusive: it
// may tell of what was written after that.
void Node::note_taken(BlockEntry& entry) noexcept {
    entry.trial.exclusive_since = races_.this_change().epoch;
    entry.trial.by = release_.numbers().note_taken();
    entry.trial.as_taken = release_.numbers().completed() == entry.trial.by;
}

// With the latch. What is published may hold what no release has told of: it is owed, as an
// atomic's is. Returns the lock's token of that version.
LockToken Node::publish_given_up(BlockId block, GiveUp when) noexcept {
    BlockEntry& entry = entries_[block];
    const LockToken token = lock_.held_token(block);
    const Timestamp wts = write_time(token.rts, min_wts());
    const Timestamp rts = wts.after(options_.lease);
    record_merge(program_range(block).address, private_copy(block), copies_.own(block),
                 block_bytes(), RecordKind::given_up);
    // The change log has no note of writes while the block was exclusive.
    copies_.publish_changes(block, private_copy(block),
                            {wts, owe_release(), {self_, entry.trial.exclusive_since}}, nullptr);
    entry.notice_wts = {};
    entry.rts = rts;
    entry.brought = false;
    entry.merging.given_up = true;
    note_life(entry.trial, when);
    entry.trial.away = true;
    entry.trial.asked |= when == GiveUp::wanted;
    if (when == GiveUp::wanted || when == GiveUp::near) guess_.wanted.expected().note_miss(block);
    count(&PlaceCounters::given_up);
    trace("dsm.give_up", block, wts.value);
    return {self_, wts, rts};
}

// With the latch, the block being invalid. False: some node has touched it, or is about to. It need
// not be asked for, nor are there bytes to be fetched.
bool Node::take_untouched(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    // Where memory is not mapped a chase for each block would cost more than it saves.
    if (!options_.exclusive || joins() || entry.early || entry.held_back || entry.guards_stack ||
        must_stay(block) || !sealed_.lets_writes(block) || !lock_.try_lock_untouched(block))
        return false;
    entry.state = take(entry, BlockEvent::taken).next;
    if (!lock_.keep(block)) {
        share_again(block);
        lock_.unlock(block, lock_.held_token(block));
        return true;
    }
    note_taken(entry);
    engine_->leave_untracked(program_range(block));
    count(&PlaceCounters::made_exclusive);
    count(&PlaceCounters::taken_first);
    trace("dsm.take_untouched", block);
    return true;
}

// With the latch: before what needs a tracked block.
void Node::stop_keeping(BlockId block) noexcept {
    const BlockState state = entries_[block].state;
    if (state == BlockState::exclusive) give_up(block, GiveUp::needed);
    if (state == BlockState::held) end_hold(block);
}

// --- wanted elsewhere ----------------------------------------------------------------------------

void Node::ask_for(NodeId holder, BlockId block) noexcept {
    thread_part().has_asked = true;
    debts_.board().want_block(holder, block);
    const Bytes part = std::as_bytes(std::span{&block, 1});
    endpoint_.send(holder, message::block_wanted, net::Urgency::wake_service, {&part, 1});
}

void Node::on_block_wanted(void* self, NodeId from, Bytes body) noexcept {
    static_cast<Node*>(self)->debts_.note_asker(from);
    BlockId block;
    HIROBA_INVARIANT(body.size() == sizeof block, "block_wanted of %lu bytes", body.size());
    std::memcpy(&block, body.data(), sizeof block);
    static_cast<Node*>(self)->wake_for_wanted(block);  // its sender has noted it
}

void Node::wanted(NodeId requester, BlockId block) noexcept {
    debts_.board().note_wanted(requester, block);
    wake_for_wanted(block);
}

void Node::wake_for_wanted(BlockId block) noexcept {
    // The thread that makes atomics there sees it by itself; if that stops, the next request comes.
    if (goes_on_holding(block)) return;
    // Elsewhere giving the lock on takes another node's doing, which a handler may not wait for.
    if (copies_.all_mapped()) {
        const RuntimeScope latches;
        if (try_give_up(block)) return;
    }
    debts_.payer().wake();
}

// A hint, without the latch.
bool Node::goes_on_holding(BlockId block) noexcept {
    return std::atomic_ref{entries_[block].state}.load(std::memory_order_relaxed) ==
               BlockState::held &&
           guess_.quantum.goes_on(now_ns());
}

// False: its latch is held.
bool Node::try_give_up(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (goes_on_holding(block)) return false;
    if (!entry.latch.try_lock()) {
        // The thread that has it may wait, for this block's lock even, unless that is kept.
        return !keeps_lock(std::atomic_ref{entry.state}.load(std::memory_order_seq_cst));
    }
    const bool exclusive = entry.state == BlockState::exclusive;
    const bool held = entry.state == BlockState::held;
    const bool owes = exclusive && give_up(block, GiveUp::wanted);
    if (held) end_hold(block);
    entry.latch.unlock();
    if (!owes && !held) return true;
    if (exclusive) give_up_near(block);
    // A node that gets these bytes asks for the release that they owe, which may begin meanwhile.
    debts_.want_own();
    debts_.payer().wake();
    return true;
}

// The first part of a run. Where another thread gives up too, one of them does so for both.
void Node::give_up_near(BlockId block) noexcept {
    if (!guess_.wanted.try_lock()) return;
    const std::size_t run = guess_.wanted.begin_run(block, entries_.size());
    guess_.wanted.give_part(run, [this](auto... part) { return give_up_row(part...); });
    guess_.wanted.unlock();
}

// The next part of each run, behind a release that tells of the one before. Returns whether
// anything was given up.
bool Node::give_up_rest() noexcept {
    if (!guess_.wanted.is_any_left() || !guess_.wanted.try_lock()) return false;
    const std::uint32_t given_up =
        guess_.wanted.give_rests([this](auto... part) { return give_up_row(part...); });
    guess_.wanted.unlock();
    if (given_up > 0) debts_.want_own();
    return given_up > 0;
}

// Blocks that another node wants next, of [first, +count_max): `most` at most, tracked again and
// protected in one call for what lies together. Returns how many were looked at and given up.
WantedBlocks::Given Node::give_up_row(BlockId first, std::uint32_t count_max,
                                      std::uint32_t most) noexcept {
    AddressRange together;
    const auto protect = [&] {
        if (together.bytes > 0) engine_->forget_writes(together);
        together = {};
    };
    std::array<BlockId, WantedBlocks::row_max> blocks;
    std::uint32_t looked_at = 0, count_own = 0;
    for (; looked_at < count_max && count_own < std::min<std::size_t>(most, blocks.size());
         ++looked_at) {
        const BlockId block = first + looked_at;
        BlockEntry& entry = entries_[block];
        // Relaxed: a look at the state of a block that is not exclusive costs no latch.
        if (std::atomic_ref{entry.state}.load(std::memory_order_relaxed) != BlockState::exclusive ||
            !entry.latch.try_lock())
            continue;
        if (entry.state != BlockState::exclusive) {
            entry.latch.unlock();
            continue;
        }
        blocks[count_own++] = block;
        const AddressRange range = program_range(block);
        share_again(block);
        engine_->track(range);
        // What was written since it was taken is this node's next release's to merge.
        if (is_as_taken(block) || is_pinned(offset_of(block))) continue;
        if (range.address != together.end()) protect();
        if (together.bytes == 0) together.address = range.address;
        together.bytes += range.bytes;
    }
    protect();
    for (const BlockId block : std::span{blocks}.first(count_own)) {
        if (is_as_taken(block)) {
            give_back(block);
        } else {
            lock_.unlock(block, publish_given_up(block, GiveUp::near));
        }
        entries_[block].latch.unlock();
    }
    return {looked_at, count_own};
}

// With the acquire role. A run whose blocks are all kept, since it was given up in vain, is soon
// forgotten: it is not wanted behind this place any more.
void Node::give_up_run(UsePredictor::Run& run) noexcept {
    std::uint32_t given_up = 0;
    bool keeps = false;
    for (BlockId block = run.first; block < run.end(); ++block) {
        BlockEntry& entry = entries_[block];
        // As in give_up_if_own().
        if (std::atomic_ref{entry.state}.load(std::memory_order_relaxed) != BlockState::exclusive ||
            !entry.latch.try_lock())
            continue;
        const bool exclusive = entry.state == BlockState::exclusive;
        const bool goes =
            exclusive && (!is_to_be_kept(entry.trial, guess_.wanted.place()) || hands_over_all());
        given_up += goes;
        keeps |= exclusive && !goes;
        if (goes && goes_whole(block)) {
            gather_to_hand_over(block);
            continue;
        }
        if (goes) give_up(block, GiveUp::ahead);
        entry.latch.unlock();
    }
    const int idle = keeps ? run_idle_max / 4 : 1;
    run.idle = given_up > 0 ? 0 : static_cast<std::uint8_t>(run.idle + idle);
    if (given_up > 0) guess_.wanted.expected().note_guess(run);
    count(&PlaceCounters::given_up_ahead, given_up);
}

// Gives up the blocks that other nodes wanted behind the last releases at this place, since they
// will want them again: a node that comes upon such a block finds it shared and need not ask, which
// would cost a release of its own. A block that no node came for until it was exclusive again, some
// times in a row, is kept until one asks. Called while no thread of the program runs here, before a
// release.
void Node::give_up_expected() noexcept {
    if (!options_.follow || !options_.exclusive) return;
    const RuntimeScope latches;
    guess_.wanted.expected().learn();
    guess_.wanted.expected().filter([](UsePredictor::Run& run) { return run.idle < run_idle_max; });
    const std::span runs = guess_.wanted.arrive(this_thread().place);
    if (runs.empty()) return;
    // For what makes blocks inaccessible. Before any latch: its holder may wait for one.
    const std::scoped_lock role{acquire_};
    for (UsePredictor::Run& run : runs)
        if (guess_.wanted.expected().is_due(run) || hands_over_all()) give_up_run(run);
    hand_over_gathered();
}

// --- handed over ---------------------------------------------------------------------------------

// Where memory is not mapped, each block would cost its taker exchanges of its own.
bool Node::hands_over() const noexcept {
    return options_.exclusive && options_.hand_over != MemoryOptions::HandOver::off && !joins();
}

// With the latch. Whether the next node will write the block, as far as is known.
bool Node::goes_whole(BlockId block) noexcept {
    const BlockEntry& entry = entries_[block];
    return hands_over() && (hands_over_all() || entry.trial.wanders) && entry.pins == 0 &&
           !must_stay(block);
}

// With the latch, which stays closed, and the acquire role. Tracked first: what is not mapped is
// not left open.
void Node::gather_to_hand_over(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (acquire_.invalidation().is_full()) hand_over_gathered();
    close_to_atomics(block);
    entry.state = take(entry, BlockEvent::handed_over).next;
    entry.watched = false;
    const AddressRange range = program_range(block);
    engine_->track(range);
    acquire_.invalidation().add(block, range);
}

// With the acquire role. From the unmapping on no node can read them: none could while they were
// exclusive here.
void Node::hand_over_gathered() noexcept {
    Invalidation& gone = acquire_.invalidation();
    if (gone.is_empty()) return;
    engine_->unmap(gone.ranges());
    for (const BlockId block : gone.blocks()) {
        lock_.unlock_sole(block, publish_given_up(block, GiveUp::ahead));
        entries_[block].latch.unlock();
    }
    gone.clear();
}

// With the latch, the block being invalid, and about to be written. If its home has handed it over
// it becomes this node's own, with its bytes: exclusive, and not yet mapped. Else this node becomes
// its home, which it would at the next release: a home's copy has no lease that may end before
// that. Returns what must be acquired before. Where somebody was faster the block is left as it
// was.
Stamp Node::take_whole(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (!hands_over() || entry.pins > 0 || entry.early || entry.held_back || entry.guards_stack ||
        entry.stale.pinned || must_stay(block) || !sealed_.lets_writes(block))
        return {};
    const auto home = lock_.find_home(block, home_guess(entry, self_), nullptr, false);
    if (!home || home->node == self_) return {};
    // Before the lock is taken: a node that gives it back cannot say that no node can read the
    // block.
    if (const Stamp before = copies_.stamp_of(home->node, block); !may_place(block, before))
        return before;
    const auto token = lock_.try_lock_sole(block, *home);
    if (!token) return {};
    Stamp missing;
    if (!has_bytes_of(*token, block)) {
        missing = install(block, token->home, BlockWork::fetch, token->wts);
    } else if (!may_place(block, copies_.own_stamp(block))) {
        missing = copies_.own_stamp(block);
    }
    entry.notice_wts = {};
    const auto open = [&] {
        open_as_home(block, *token);
        entry.brought = !missing.is_none();
        count(&PlaceCounters::fetches_by_home);
        return missing;
    };
    if (!missing.is_none() || entry.early || !token->sole || token->read) return open();
    entry.state = take(entry, BlockEvent::taken).next;
    if (!lock_.keep(block)) {
        share_again(block);
        return open();
    }
    note_taken(entry);
    engine_->leave_untracked(program_range(block));
    entry.trial.wts = {};
    note_wanted(entry.trial);
    entry.brought = false;
    entry.rts = token->rts;  // whatever news tells of is older
    if (hands_over_all()) guess_.wanted.expected().note_miss(block);
    count(&PlaceCounters::made_exclusive);
    count(&PlaceCounters::taken_whole);
    trace("dsm.take_whole", block, token->wts.value);
    return {};
}

// Thread: any but a handler's, with what latches it has.
void Node::serve_wanted() noexcept {
    if (!debts_.board().is_block_wanted()) return;
    const RuntimeScope latches;
    debts_.board().each_wanted_block([&](BlockId block) { return try_give_up(block); });
}

}  // namespace hiroba::dsm
