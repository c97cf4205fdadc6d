// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/relocator.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/clock.hpp"
#include "base/trace.hpp"
#include "gas/gas.hpp"
#include "gas/relocatable/thread_slots.hpp"

namespace hiroba::gas {
namespace {

/// How long a sharer that has not drained, or a page that another moves, is left alone; and a node
/// that does not answer.
constexpr std::uint64_t pause_busy_ns = 2'000, pause_idle_ns = 20'000, pause_max_ns = 1'000'000;
/// A token names the call and, in waves, the change: changes of a call are fewer than this.
constexpr unsigned change_bits = 16;
/// The token of messages whose answer no call waits for: calls count from 1.
constexpr std::uint64_t no_call = 0;

}  // namespace

// --- what messages tell --------------------------------------------------------------------------

void Relocator::granted(std::uint64_t token, SpaceMessages::Words words) noexcept {
    const std::scoped_lock guard{calls_latch_};
    const auto found = calls_.find(token);
    if (found == calls_.end()) return;  // its directory node died after this
    Call& call = *found->second;
    const std::scoped_lock inside{call.latch};
    call.granted.insert(call.granted.end(), words.begin(), words.end());
    call.events.fetch_add(1);
}

void Relocator::ready(NodeId from, std::uint64_t token, SpaceMessages::Words words) noexcept {
    const std::scoped_lock guard{calls_latch_};
    const auto found = calls_.find(token >> change_bits);
    if (found == calls_.end()) return;
    Call& call = *found->second;
    const std::scoped_lock inside{call.latch};
    call.answers.push_back({from.value, token & ((1u << change_bits) - 1),
                            static_cast<SpaceMessageKind>(words[0]), words[1] != 0});
    call.events.fetch_add(1);
}

void Relocator::joined(SpaceMessages::Words words) noexcept {
    const std::scoped_lock guard{calls_latch_};
    for (const auto& [token, call] : calls_) {
        const std::scoped_lock inside{call->latch};
        call->joined.insert(call->joined.end(), words.begin(), words.end());
        call->has_joined.store(true);
    }
}

void Relocator::wave(NodeId from, SpaceMessageKind kind, std::uint64_t token,
                     SpaceMessages::Words words) noexcept {
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
        const std::uint64_t page = page_of(words[i]);
        const PageWord next = PageWord::unpack(words[i + 1]);
        if (kind == SpaceMessageKind::stop) cache_.stop(page, next, tag_of(words[i]));
        if (kind == SpaceMessageKind::move) cache_.move(page, next, tag_of(words[i]));
        if (kind == SpaceMessageKind::resume) cache_.resume(page, next, tag_of(words[i]));
    }
    if (kind == SpaceMessageKind::resume) return;
    fence_all_threads();
    bool drained = true;
    for (std::size_t i = 0; drained && i + 1 < words.size(); i += 2) {
        const std::uint64_t page = page_of(words[i]);
        drained = kind == SpaceMessageKind::stop ? cache_.writes_drained(page)
                                                 : cache_.reads_drained(page);
    }
    const std::uint64_t answer[] = {static_cast<std::uint64_t>(kind), drained ? 1u : 0u};
    messages_.send(from, SpaceMessageKind::ready, token, answer);
}

// --- the mover -----------------------------------------------------------------------------------

void Relocator::fail(Call& call, Fault fault, std::uint32_t rank, std::uint64_t page) {
    if (call.status) call.status = {fault, rank, page};
}

Status Relocator::move(std::span<const std::uint64_t> pages, Goal goal) {
    Call call;
    call.goal = goal;
    call.wanted.insert(pages.begin(), pages.end());
    {
        const std::scoped_lock guard{calls_latch_};
        call.token = next_token_++;
        calls_[call.token] = &call;
    }
    call.refused = directory_->claim(call.token, pages);
    while (!call.wanted.empty() || !call.changes.empty()) {
        const std::uint64_t seen = call.events.load();
        const std::uint32_t dead_seen = dead_.count();
        bool progressed = take_events(call);
        take_joined(call);
        for (const auto& change : call.changes) progressed |= advance(call, *change);
        std::erase_if(call.changes,
                      [](const auto& it) { return it->phase == Change::Phase::done; });
        if (dead_seen != 0) progressed |= give_up_dead_directories(call);
        if (progressed) {
            call.pause_ns = 0;
        } else {
            pause(call, seen, dead_seen);
        }
    }
    const std::scoped_lock guard{calls_latch_};
    calls_.erase(call.token);
    return call.status;
}

/// Waits for messages, or for the time to ask again.
void Relocator::pause(Call& call, std::uint64_t seen, std::uint32_t dead_seen) {
    bool asks_again = !call.refused.empty();
    bool copies = false;
    for (const auto& change : call.changes) {
        asks_again |= must_ask_again(*change);
        copies |= change->phase == Change::Phase::copying;
    }
    const auto news = [&] {
        if (call.events.load() != seen || dead_.count() != dead_seen) return true;
        return copies && std::ranges::any_of(call.changes, [](const auto& it) {
                   return it->phase == Change::Phase::copying &&
                          std::ranges::all_of(it->copies,
                                              [](const auto& copy) { return copy.second.done(); });
               });
    };
    const std::uint64_t pause_first_ns = asks_again ? pause_busy_ns : pause_idle_ns;
    call.pause_ns = std::clamp(2 * call.pause_ns, pause_first_ns, pause_max_ns);
    const std::uint64_t until_ns = now_ns() + call.pause_ns;
    const auto stirred = [&] { return news() || call.has_joined.load(); };
    while (async_.endpoint().wait_until(stirred, until_ns)) {
        if (news()) return;
        take_joined(call);
    }
    messages_.wake(awaited(call));
    for (const auto& change : call.changes) send_wave(call, *change, wave_of(*change), true);
    if (!call.refused.empty()) {
        const auto again = std::exchange(call.refused, {});
        call.refused = directory_->claim(call.token, again);
    }
}

/// Nodes whose messages are to come.
RankSet Relocator::awaited(const Call& call) const {
    RankSet nodes;
    for (const std::uint64_t page : call.wanted) nodes.add(shape_.directory_of(page).value);
    for (const auto& change : call.changes) {
        for (const Peer& peer : change->peers) {
            if (!peer.ready) nodes.add(peer.rank);
        }
    }
    return nodes;
}

bool Relocator::take_events(Call& call) {
    std::vector<std::uint64_t> words;
    std::vector<Answer> answers;
    {
        const std::scoped_lock guard{call.latch};
        words.swap(call.granted);
        answers.swap(call.answers);
    }
    std::vector<GrantedPage> pages;
    const std::size_t words_of_page = 2 + shape_.sharer_words();
    for (std::size_t i = 0; i + words_of_page <= words.size(); i += words_of_page) {
        GrantedPage& granted = pages.emplace_back();
        granted.page = words[i];
        granted.word = PageWord::unpack(words[i + 1]);
        for (std::uint32_t k = 0; k < shape_.sharer_words(); ++k) {
            granted.sharers.word(k) = words[i + 2 + k];
        }
        call.wanted.erase(words[i]);
    }
    if (!pages.empty()) begin(call, std::move(pages));
    bool progressed = !words.empty();
    for (const Answer& answer : answers) {
        for (const auto& change : call.changes) {
            if (change->number != answer.change || wave_of(*change) != answer.wave) continue;
            for (Peer& peer : change->peers) {
                if (peer.rank != answer.from) continue;
                peer.ready |= answer.drained;
                peer.busy = !answer.drained;
                progressed |= answer.drained;
            }
        }
    }
    return progressed;
}

/// Takes nothing while `granted` has words: the message that granted a page may have come before
/// the `join` that names the page.
void Relocator::take_joined(Call& call) {
    if (!call.has_joined.load()) return;
    std::vector<std::uint64_t> joined;
    {
        const std::scoped_lock guard{call.latch};
        if (!call.granted.empty()) return;
        joined.swap(call.joined);
        call.has_joined.store(false);
    }
    for (const std::uint64_t word : joined) join(call, page_of(word), tag_of(word));
}

/// Makes `rank`, which misses the page, a sharer that this move knows, if the page moves here.
void Relocator::join(const Call& call, std::uint64_t page, std::uint32_t rank) {
    if (call.goal != Goal::own || rank == self_.value) return;
    for (const auto& change : call.changes) {
        const bool takes =
            change->phase == Change::Phase::stopping || change->phase == Change::Phase::copying;
        if (!takes) continue;
        for (std::size_t i = 0; i < change->pages.size(); ++i) {
            GrantedPage& granted = change->pages[i];
            if (granted.page != page || granted.sharers.contains(rank)) continue;
            granted.sharers.add(rank);
            const auto is_rank = [&](const Peer& peer) { return peer.rank == rank; };
            if (std::ranges::none_of(change->peers, is_rank))
                change->peers.push_back({.rank = rank, .ready = true});
            const std::uint64_t words[] = {tagged(page, granted.word.owner),
                                           change->next[i].pack()};
            messages_.send(NodeId{rank}, SpaceMessageKind::stop, no_call, words);
            trace("gas.joined", page, rank);
        }
    }
}

/// Sorts out what need not or cannot move; stops writes to the rest.
void Relocator::begin(Call& call, std::vector<GrantedPage> pages) {
    auto change = std::make_unique<Change>();
    std::vector<CommittedPage> as_it_was;
    RankSet sharers;
    std::ranges::sort(pages, {}, &GrantedPage::page);  // for copy()
    for (const GrantedPage& page : pages) {
        if (!page.word.live) {
            fail(call, Fault::not_allocated, 0, page.page);
        } else if (page.word.lost) {
            fail(call, Fault::peer_lost, page.word.owner, page.page);
        } else if (call.goal == Goal::own && page.word.fixed) {
            fail(call, Fault::not_relocatable, 0, page.page);
            as_it_was.push_back({page.page, page.word});
        } else if (call.goal == Goal::own && page.word.owner == self_.value) {
            as_it_was.push_back({page.page, page.word});
        } else {
            PageWord next = page.word;
            next.mover = static_cast<std::uint16_t>(self_.value);
            next.version = page.word.next_version();
            next.live = call.goal == Goal::own;
            if (next.live) next.owner = next.mover;
            sharers |= page.sharers;
            change->pages.push_back(page);
            change->next.push_back(next);
        }
    }
    if (!as_it_was.empty()) directory_->commit(as_it_was);
    if (change->pages.empty()) return;
    change->number = call.changes_made++ & ((1u << change_bits) - 1);
    for (std::uint32_t rank = 0; rank < shape_.nodes; ++rank) {
        if (sharers.contains(rank) && rank != self_.value) change->peers.push_back({rank});
    }
    call.changes.push_back(std::move(change));
    send_wave(call, *call.changes.back(), SpaceMessageKind::stop, false);
    apply_here(*call.changes.back(), SpaceMessageKind::stop);
}

/// @param again  only to the peers that have said that they have not drained
void Relocator::send_wave(const Call& call, Change& change, SpaceMessageKind kind, bool again) {
    std::vector<std::uint64_t> words;
    for (Peer& peer : change.peers) {
        if (again && !peer.busy) continue;
        if (!again) peer.ready = false;
        peer.busy = false;
        words.clear();
        for (std::size_t i = 0; i < change.pages.size(); ++i) {
            const GrantedPage& page = change.pages[i];
            if (!page.sharers.contains(peer.rank)) continue;
            words.push_back(tagged(page.page, page.word.owner));
            words.push_back(change.next[i].pack());
        }
        messages_.send(NodeId{peer.rank}, kind, call.token << change_bits | change.number, words);
    }
}

void Relocator::apply_here(const Change& change, SpaceMessageKind kind) {
    for (std::size_t i = 0; i < change.pages.size(); ++i) {
        const GrantedPage& page = change.pages[i];
        if (kind == SpaceMessageKind::stop) cache_.stop(page.page, change.next[i], page.word.owner);
        if (kind == SpaceMessageKind::move) cache_.move(page.page, change.next[i], page.word.owner);
        if (kind == SpaceMessageKind::resume)
            cache_.resume(page.page, change.next[i], page.word.owner);
    }
    if (kind != SpaceMessageKind::resume) fence_all_threads();
}

bool Relocator::is_drained_here(const Change& change) const {
    return std::ranges::all_of(change.pages, [&](const GrantedPage& page) {
        return change.phase == Change::Phase::stopping ? cache_.writes_drained(page.page)
                                                       : cache_.reads_drained(page.page);
    });
}

/// Whether all peers and this node have drained, or died, so that the next wave may go.
bool Relocator::is_ready(const Change& change) const {
    for (const Peer& peer : change.peers) {
        if (!peer.ready && !dead_.contains(peer.rank)) return false;
    }
    return is_drained_here(change);
}

/// Whether a peer, or this node, has not drained and will not say when it has.
bool Relocator::must_ask_again(const Change& change) const {
    if (change.phase == Change::Phase::copying) return false;
    return std::ranges::any_of(change.peers, &Peer::busy) || !is_drained_here(change);
}

/// True when it has come a phase further.
bool Relocator::advance(Call& call, Change& change) {
    switch (change.phase) {
        case Change::Phase::stopping:
            if (!is_ready(change)) return false;
            change.phase = Change::Phase::copying;
            if (call.goal == Goal::own) copy(call, change);
            return true;
        case Change::Phase::copying:
            for (const auto& [owner, copies] : change.copies) {
                if (!copies.done()) return false;
            }
            note_copies(call, change);
            change.phase = Change::Phase::moving;
            send_wave(call, change, SpaceMessageKind::move, false);
            apply_here(change, SpaceMessageKind::move);
            return true;
        case Change::Phase::moving:
            if (!is_ready(change)) return false;
            finish(call, change);
            change.phase = Change::Phase::done;
            return true;
        case Change::Phase::done: break;
    }
    return false;
}

/// Pages in a row of one owner are bytes in a row there and here.
void Relocator::copy(Call&, Change& change) {
    for (std::size_t i = 0; i < change.pages.size();) {
        std::size_t end = i + 1;
        while (end < change.pages.size() &&
               change.pages[end].page == change.pages[end - 1].page + 1 &&
               change.pages[end].word.owner == change.pages[i].word.owner) {
            ++end;
        }
        const std::uint64_t first = change.pages[i].page;
        const std::uint32_t owner = change.pages[i].word.owner;
        const std::size_t bytes = (end - i) << shape_.page_shift;
        std::byte* const to = cache_.reach(first, self_.value);
        const std::uint64_t offset = first << shape_.page_shift;
        if (const std::byte* from = cache_.reach(first, owner)) {
            copy_shared(to, from, bytes);
        } else {
            change.copies[owner].issue(async_, [&](net::Callback done) {
                return async_.try_read(
                    {NodeId{owner}, {frames_, offset}, {frames_, offset}, bytes, done});
            });
        }
        i = end;
    }
}

/// Notes the pages whose copy failed: they died with their owner.
void Relocator::note_copies(Call& call, Change& change) {
    for (const auto& [owner, copies] : change.copies) {
        if (copies.good()) continue;
        for (std::size_t i = 0; i < change.pages.size(); ++i) {
            if (change.pages[i].word.owner != owner) continue;
            change.next[i].lost = true;
            change.next[i].owner = static_cast<std::uint16_t>(owner);
            fail(call, Fault::peer_lost, owner, change.pages[i].page);
        }
    }
}

void Relocator::finish(Call& call, Change& change) {
    send_wave(call, change, SpaceMessageKind::resume, false);
    apply_here(change, SpaceMessageKind::resume);
    std::vector<CommittedPage> commits;
    for (std::size_t i = 0; i < change.pages.size(); ++i) {
        PageWord word = change.next[i];
        word.moving = false;
        commits.push_back({change.pages[i].page, word});
        trace("gas.moved", change.pages[i].page, change.pages[i].word.owner);
    }
    directory_->commit(commits);
    if (call.goal == Goal::own) pages_moved_.fetch_add(change.pages.size());
}

/// True when there was one.
bool Relocator::give_up_dead_directories(Call& call) {
    return std::erase_if(call.wanted, [&](std::uint64_t page) {
               const std::uint32_t directory = shape_.directory_of(page).value;
               if (!dead_.contains(directory)) return false;
               std::erase(call.refused, page);
               fail(call, Fault::peer_lost, directory, page);
               return true;
           }) != 0;
}

}  // namespace hiroba::gas
