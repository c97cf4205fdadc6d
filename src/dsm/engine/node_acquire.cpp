// SPDX-License-Identifier: BSD-3-Clause
// Role: the acquire: what was learned is applied: stale copies become inaccessible, then pinned
// ones are brought up to date in place.
// Invariant: a block's new notice and state are recorded under its latch, then it is unmapped, then
// compared with its twin, and only then the latch is opened: nobody can map it in between
// (invariant 7).
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

void Node::acquire(Others others) noexcept { acquire_unless_current(others, {}); }

// Where no thread of the program runs, the order in which blocks get their new bytes does not
// matter: nobody sees some of a release and not the rest.
void Node::acquire_in_place(const void* address, std::size_t bytes) noexcept {
    Kept kept;
    const auto offset = map_.offset_of(reinterpret_cast<std::uintptr_t>(address));
    if (offset && bytes > 0) {
        kept.first = block_at(*offset);
        kept.end = block_at(*offset + map_.extent_left(*offset, bytes) - 1) + 1;
    }
    acquire_unless_current(Others::stopped, kept);
}

void Node::acquire_unless_current(Others others, Kept kept) noexcept {
    // Pairs with the release store in learn_known().
    if (has_pending_known_.load(std::memory_order_acquire))
        on_runtime_stack([&] { acquire_known(); });
    // Pairs with the release store in learn().
    if (!has_pending_.load(std::memory_order_acquire)) {
        // Another thread may still be applying what this one has learned, in several rounds.
        acquire_.await_open();
        if (!unfinished_.load(std::memory_order_acquire)) return;  // pairs with acquire_round()
    }
    on_runtime_stack([&] { acquire_on_runtime_stack(others, Flusher::program, kept); });
}

// Nothing is held between two rounds: what is missing takes a release of another node, which may
// wait for one of this.
void Node::acquire_on_runtime_stack(Others others, Flusher flusher, Kept kept) noexcept {
    const Timed timed{*this, &PlaceCounters::acquire_ns};
    Backoff backoff;
    for (;;) {
        const Stamp missing = acquire_round(others, flusher, kept);
        if (missing.is_none()) return;
        if (missing.writer() != self_) {
            pull(missing);
        } else {
            backoff.pause();  // a release of this node ends, which waits for nobody
        }
    }
}

// Everything that is stale becomes inaccessible, then pinned blocks get their new bytes, and only
// then do these releases count as acquired: until then whoever fetches bytes of them waits for this
// role. So no thread that goes on meanwhile sees some of a release and not the rest.
Stamp Node::acquire_round(Others others, Flusher flusher, Kept kept) noexcept {
    const std::scoped_lock role{acquire_};
    acquirer_ = flusher;
    kept_ = kept;
    stopped_ = others == Others::stopped;
    follows_ = stopped_ && options_.follow;
    rounds_.fetch_add(1, std::memory_order_relaxed);  // a hint elsewhere
    count(&PlaceCounters::acquires);
    unfinished_.store(true, std::memory_order_release);  // pairs with acquire()
    has_pending_.store(false,
                       std::memory_order_release);  // pairs with acquire(): the role is taken
    take_pending();
    trace("dsm.acquire", taken_count_);
    apply_taken();
    taken_count_ = 0;
    finish_invalidations();
    const Timestamp expired_to = min_wts();
    look_at_moved();
    expire_leases();
    finish_invalidations();
    if (const Stamp missing = open_need(); !missing.is_none()) return missing;
    for (std::uint32_t node = 0; node < applied_.size(); ++node) {
        // In one order with what must_hold_back() does: it sees this, or is seen below.
        inaccessible_[node].store(applied_[node], std::memory_order_seq_cst);
    }
    const bool all = show_held_back(others);
    if (const Stamp missing = rebase_pinned(); !missing.is_none()) return missing;
    if (!all || made_needs_any_.load(std::memory_order_seq_cst)) {
        return {self_, begun_.load(std::memory_order_relaxed)};
    }
    for (std::uint32_t node = 0; node < applied_.size(); ++node) {
        // Release, pairs with may_show().
        acquired_[node].store(applied_[node], std::memory_order_release);
    }
    expired_to_.store(expired_to.value, std::memory_order_release);  // pairs with learn()
    unfinished_.store(false, std::memory_order_release);
    return {};
}

// What of the acquired bytes was read from releases that are not acquired yet; none: nothing.
Stamp Node::open_need() noexcept {
    const std::scoped_lock guard{signature_latch_};
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) {
        if (node == self_.value || clocks_[node].needed <= applied_[node]) continue;
        return {NodeId{node}, clocks_[node].needed};
    }
    needs_open_.store(false, std::memory_order_release);        // pairs with may_show()
    shown_up_to_ = completed_.load(std::memory_order_relaxed);  // changes under the latch
    return {};
}

// Extents may overlap, and a block that was made stale keeps its latch until all are unmapped.
void Node::apply_taken() noexcept {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < taken_count_; ++i) {
        const Notice& notice = taken_[i];
        if (notice.node == self_ || (i > 0 && taken_[i - 1].same_blocks(notice))) continue;
        if (notice.block < end) finish_invalidations();
        end = std::max(end, std::uint64_t{notice.block} + notice.count);
        apply_notice(notice);
    }
}

// Joins the news into the signature (causality through a third node needs it) and sorts them by
// block, the newest of each extent first. Raises min_wts before anything is looked at.
void Node::take_pending() noexcept {
    join_pending();
    std::sort(taken_.data(), taken_.data() + taken_count_, [](const Notice& a, const Notice& b) {
        if (a.block != b.block) return a.block < b.block;
        return a.count != b.count ? a.count < b.count : a.wts > b.wts;
    });
}

// With the acquire role. What is joined this node tells others; it is applied by the next round.
void Node::join_pending() noexcept {
    const std::size_t before = taken_count_;
    Timestamp learned_min_wts;
    bool aside;
    const std::scoped_lock guard{signature_latch_};
    {
        const std::scoped_lock pending{pending_latch_};
        HIROBA_INVARIANT(before + pending_count_ <= taken_.size(), "%lu notices taken", before);
        std::memcpy(taken_.data() + before, pending_.data(), pending_count_ * sizeof(Notice));
        taken_count_ += pending_count_;
        pending_count_ = 0;
        learned_min_wts = pending_min_wts_;
        aside = std::exchange(pending_aside_, false);
        join_clocks();
    }
    for (std::size_t i = before; i < taken_count_; ++i) signature_.add(taken_[i], known_to_all());
    if (taken_count_ > before) note_untold();
    if (aside) learned_aside_ = signature_.last_sequence();
    signature_.raise_min_wts(learned_min_wts);
    show_min_wts();
}

// With the latches of both.
void Node::join_clocks() noexcept {
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) {
        Clock& clock = clocks_[node];
        const Clock learned = pending_clocks_[node];
        if (node != self_.value && (clock.told < learned.told || clock.needed < learned.needed)) {
            clock.told = std::max(clock.told, learned.told);
            clock.needed = std::max(clock.needed, learned.needed);
            clock.epoch = std::max(clock.epoch, learned.epoch);
            clock.changed = signature_.mark();
            note_untold();
        }
        applied_[node] = clock.told;
    }
}

void Node::apply_notice(const Notice& notice) noexcept {
    for (std::uint32_t i = 0; i < notice.count; ++i) apply_to_block(notice.block + i, notice);
}

void Node::apply_to_block(BlockId block, const Notice& notice) noexcept {
    if (invalidation_.blocks.size() == invalidation_.blocks.capacity()) finish_invalidations();
    BlockEntry& entry = entries_[block];
    entry.latch.lock();
    if (notice.wts > copies_.own_wts(block) && notice.wts > entry.notice_wts) {
        entry.knows_writer = true;
        entry.notice_node = notice.node;
        entry.notice_wts = notice.wts;
        entry.notice_rts = notice.rts;
    }
    if (readable(entry.state) && entry.rts < notice.wts) {
        count(&PlaceCounters::invalidations);
        make_stale(block);
    } else {
        // No thread here has used what it was before, unless an older notice has told of that.
        if (!readable(entry.state) && !is_stale_just_now(entry)) entry.follow = {};
        entry.latch.unlock();
    }
}

// By the acquire under way or, until the next one, the last.
bool Node::is_stale_just_now(const BlockEntry& entry) const noexcept {
    return entry.follow.stale_in == rounds_.load(std::memory_order_relaxed);
}

// With the latch. What has been used after it became stale, several times in a row, is brought up
// to date in place; now and then it is left to a fault, ever less often, to see whether it still
// is.
bool Node::is_followed(BlockEntry& entry) noexcept {
    if (!follows_ || entry.follow.uses < followed_min) return false;
    if (++entry.follow.brought < 1u << entry.follow.uses) return true;
    entry.follow.brought = 0;
    return false;
}

// With the latch, which it opens. A thread that runs may see the new bytes of a pinned block at
// once: all others that are stale are made inaccessible first.
void Node::put_off(BlockId block) noexcept {
    if (!entries_[block].stale_pinned) {
        entries_[block].stale_pinned = true;
        stale_pinned_[stale_pinned_count_++] = block;
    }
    entries_[block].latch.unlock();
}

// In the acquire role: what was needed for them has been acquired. Where a thread may be running, a
// block that need not stay accessible is made stale: its next access finds all bytes. False: of the
// release under way there are others.
bool Node::show_held_back(Others others) noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0;; ++i) {
        BlockId block;
        {
            const std::scoped_lock guard{unmerged_latch_};
            if (i == held_back_count_) {
                held_back_count_ = kept;
                break;
            }
            block = held_back_[i];
        }
        if (invalidation_.blocks.size() == invalidation_.blocks.capacity()) finish_invalidations();
        BlockEntry& entry = entries_[block];
        entry.latch.lock();
        if (entry.held_back && entry.held_back_by > shown_up_to_) {
            const std::scoped_lock list{unmerged_latch_};
            held_back_[kept++] = block;
            entry.latch.unlock();
            continue;
        }
        entry.held_back_listed = false;
        const bool in_place = !entry.held_back || others == Others::stopped || must_stay(block);
        if (!in_place && readable(entry.state)) {
            make_stale(block);
            continue;
        }
        stop_holding_back(block);
        entry.latch.unlock();
    }
    finish_invalidations();
    return kept == 0;
}

// In place. What is missing before that may be done to the last of them; none: all are current.
// Whose bytes were written after what is acquired here, and need not stay, is made inaccessible
// after all: nobody waits for another node's release before somebody asks for them, and whether the
// program first reads or writes it is seen (node_races.cpp).
Stamp Node::rebase_pinned() noexcept {
    if (joins_) rebase_together();
    for (; stale_pinned_count_ > 0; --stale_pinned_count_) {
        const BlockId block = stale_pinned_[stale_pinned_count_ - 1];
        BlockEntry& entry = entries_[block];
        entry.latch.lock();
        Stamp missing;
        if (readable(entry.state)) {
            const bool clean = may_be_overwritten(block);
            missing = bring_current(block, clean ? BlockWork::fetch : BlockWork::rebase);
        }
        const bool stays = missing.is_none() || must_stay(block);
        entry.stale_pinned = stays && !missing.is_none();
        if (stays) {
            entry.latch.unlock();
            if (!missing.is_none()) return missing;
            continue;
        }
        kept_ = {};
        follows_ = false;
        make_stale(block);
        finish_invalidations();
    }
    return {};
}

// With the latch held; a pinned block's is opened here, others' by finish_invalidations().
void Node::make_stale(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    entry.stale_aside = acquirer_ == Flusher::background;
    if (entry.pins > 0 || kept_.has(block)) return put_off(block);
    if (entry.state != BlockState::pinned && is_followed(entry)) {
        count(&PlaceCounters::followed);
        return put_off(block);
    }
    if (entry.state == BlockState::pinned && !is_pinned(offset_of(block))) {
        entry.state = take(entry, BlockEvent::unpinned).next;
    }
    const BlockStep next = take(entry, BlockEvent::stale);
    entry.state = next.next;
    if (has(next.work, BlockWork::rebase)) return put_off(block);
    const AddressRange range = program_range(block);
    auto& ranges = invalidation_.ranges;
    if (!ranges.empty() && ranges.back().end() == range.address) {
        ranges.back().bytes += range.bytes;
    } else {
        ranges.push_back(range);
    }
    invalidation_.blocks.push_back(block);
}

// With the latch. No thread of the program sees the private copy before the acquire ends, and it
// holds nothing but what was merged: as if it were inaccessible.
bool Node::may_be_overwritten(BlockId block) noexcept {
    const BlockEntry& entry = entries_[block];
    return stopped_ && entry.state == BlockState::readonly && !entry.held_back &&
           !must_stay(block) && !has_changed(block);
}

void Node::finish_invalidations() noexcept {
    if (invalidation_.blocks.empty()) return;
    engine_->unmap(invalidation_.ranges);
    for (const BlockId block : invalidation_.blocks) {
        BlockEntry& entry = entries_[block];
        // A block that was only readable too: a write may have come between a release's look at it
        // and its end.
        const bool changed = has_changed(block);
        stop_holding_back(block);  // no thread sees it
        const BlockStep next =
            take(entry, changed ? BlockEvent::found_changed : BlockEvent::found_equal);
        if (has(next.work, BlockWork::remember)) put_on_unmerged(block);
        entry.state = next.next;
        entry.follow.stale_in = rounds_.load(std::memory_order_relaxed);
        entry.latch.unlock();
    }
    invalidation_.ranges.clear();
    invalidation_.blocks.clear();
}

void Node::expire_leases() noexcept {
    LeaseQueue::Lease lease;
    while (leases_.pop_before(min_wts(), lease)) {
        if (invalidation_.blocks.size() == invalidation_.blocks.capacity()) finish_invalidations();
        BlockEntry& entry = entries_[lease.block];
        entry.latch.lock();
        entry.queued = false;
        // NOLINTNEXTLINE(bugprone-branch-clone): in this order.
        if (!readable(entry.state)) {
            entry.latch.unlock();
        } else if (entry.rts >= min_wts()) {
            set_lease(lease.block, entry.rts);
            entry.latch.unlock();
        } else if (entry.state == BlockState::exclusive || lock_.is_here(lease.block)) {
            entry.latch.unlock();  // a home's copy needs no lease: look_at_moved()
        } else {
            count(&PlaceCounters::lease_expiries);
            make_stale(lease.block);
        }
    }
}

// What this node was the home of is from now on a copy like any reader's, until what readers were
// given when the lock went. Whatever was written elsewhere since, and told of or dropped on its way
// here, was marked before that. Also when no min_wts has risen: a home's copy may be older than any
// that readers have left, and so may be the next write.
void Node::look_at_moved() noexcept {
    moved_.take([&](BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        if (!readable(entry.state) || entry.state == BlockState::exclusive) return;
        if (lock_.is_here(block)) return;
        set_lease(block, std::max(entry.rts, lock_.rts_when_it_went(block)));
    });
}

}  // namespace hiroba::dsm
