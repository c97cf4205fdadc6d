// SPDX-License-Identifier: BSD-3-Clause
// Role: the acquire: what was learned is applied: stale copies become inaccessible, pinned ones
// are brought up to date in place.
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

void Node::acquire(Others) noexcept {
    // Pairs with the release store in learn_known().
    if (has_pending_known_.load(std::memory_order_acquire))
        on_runtime_stack([&] { acquire_known(); });
    // Pairs with the release store in learn().
    if (!has_pending_.load(std::memory_order_acquire)) {
        // Another thread may still be applying what this one has learned.
        acquire_.await_open();
        return;
    }
    on_runtime_stack([&] { acquire_on_runtime_stack(); });
}

void Node::acquire_on_runtime_stack() noexcept {
    const Timed timed{*this, &PlaceCounters::acquire_ns};
    const std::scoped_lock role{acquire_};
    count(&PlaceCounters::acquires);
    taken_count_ = take_pending();
    trace("dsm.acquire", taken_count_);
    apply_taken();
    finish_invalidations();
    const Timestamp expired_to = min_wts();
    look_at_moved();
    expire_leases();
    finish_invalidations();
    expired_to_.store(expired_to.value, std::memory_order_release);  // pairs with learn()
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
std::size_t Node::take_pending() noexcept {
    std::size_t notices;
    Timestamp learned_min_wts;
    bool aside = false;
    {
        const std::scoped_lock guard{pending_latch_};
        // Release, pairs with acquire(): who reads it sees the acquire role taken.
        has_pending_.store(false, std::memory_order_release);
        notices = pending_count_;
        std::memcpy(taken_.data(), pending_.data(), notices * sizeof(Notice));
        pending_count_ = 0;
        learned_min_wts = pending_min_wts_;
        aside = std::exchange(pending_aside_, false);
    }
    {
        const std::scoped_lock guard{signature_latch_};
        for (std::size_t i = 0; i < notices; ++i) signature_.add(taken_[i], known_to_all());
        if (notices > 0) note_untold();
        if (aside) learned_aside_ = signature_.last_sequence();
        signature_.raise_min_wts(learned_min_wts);
        show_min_wts();
    }
    std::sort(taken_.data(), taken_.data() + notices, [](const Notice& a, const Notice& b) {
        if (a.block != b.block) return a.block < b.block;
        return a.count != b.count ? a.count < b.count : a.wts > b.wts;
    });
    return notices;
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
        entry.latch.unlock();
    }
}

// With the latch held; a pinned block's is opened here, others' by finish_invalidations().
void Node::make_stale(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    entry.watched = false;  // was not used
    if (entry.pins > 0) {
        bring_current(block, BlockWork::rebase);
        entry.latch.unlock();
        return;
    }
    if (entry.state == BlockState::pinned && !is_pinned(offset_of(block))) {
        entry.state = take(entry, BlockEvent::unpinned).next;
    }
    const BlockStep next = take(entry, BlockEvent::stale);
    entry.state = next.next;
    if (has(next.work, BlockWork::rebase)) {
        bring_current(block, BlockWork::rebase);
        entry.latch.unlock();
        return;
    }
    const AddressRange range = program_range(block);
    auto& ranges = invalidation_.ranges;
    if (!ranges.empty() && ranges.back().end() == range.address) {
        ranges.back().bytes += range.bytes;
    } else {
        ranges.push_back(range);
    }
    invalidation_.blocks.push_back(block);
}

void Node::finish_invalidations() noexcept {
    if (invalidation_.blocks.empty()) return;
    engine_->unmap(invalidation_.ranges);
    for (const BlockId block : invalidation_.blocks) {
        BlockEntry& entry = entries_[block];
        // A block that was only readable too: a write may have come between a release's look at it
        // and its end.
        const bool changed = differs(private_copy(block), copies_.own(block), block_bytes_);
        const BlockStep next =
            take(entry, changed ? BlockEvent::found_changed : BlockEvent::found_equal);
        if (has(next.work, BlockWork::remember)) put_on_unmerged(block);
        entry.state = next.next;
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
        if (!readable(entry.state)) {
            entry.latch.unlock();
        } else if (entry.rts >= min_wts()) {
            set_lease(lease.block, entry.rts);
            entry.latch.unlock();
        } else if (lock_.is_here(lease.block)) {
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
        if (!readable(entry.state) || lock_.is_here(block)) return;
        set_lease(block, std::max(entry.rts, lock_.rts_when_it_went(block)));
    });
}

}  // namespace hiroba::dsm
