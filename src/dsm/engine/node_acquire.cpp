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

void Node::acquire(Others others) noexcept {
    if (news_.epochs().has_learned()) on_runtime_stack([&] { races_.acquire_known(); });
    if (!news_.learned().any()) {
        // Another thread may still be applying what this one has learned, in several rounds.
        acquire_.await_open();
        if (!acquire_.is_unfinished()) return;
    }
    on_runtime_stack([&] { acquire_on_runtime_stack(others); });
}

// Nothing is held between two rounds: what is missing takes a release of another node, which may
// wait for one of this.
void Node::acquire_on_runtime_stack(Others others, Flusher flusher) noexcept {
    const Timed timed{statistics_, &PlaceCounters::acquire_ns};
    const RecordedWork recorded{RecordKind::acquire};
    Backoff backoff;
    for (;;) {
        const Stamp missing = acquire_round(others, flusher);
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
Stamp Node::acquire_round(Others others, Flusher flusher) noexcept {
    const std::scoped_lock role{acquire_};
    const bool stopped = others == Others::stopped;
    acquire_.begin(flusher, stopped, stopped && options_.follow);
    count(&PlaceCounters::acquires);
    news_.learned().taken();
    take_pending();
    // In a program that flushes any of these bytes may be the flag that orders what came before.
    // Another thread of this node may read it, and write, as soon as they can be shown.
    if (news_.program_flushes()) races_.acquire_known();
    trace("dsm.acquire", acquire_.taken().size());
    apply_taken();
    acquire_.forget_taken();
    finish_invalidations();
    const Timestamp expired_to = min_wts();
    look_at_moved();
    expire_leases();
    finish_invalidations();
    if (const Stamp missing = open_need(); !missing.is_none()) return missing;
    // In one order with what must_hold_back() does: it sees this, or is seen below.
    acquire_.set_inaccessible();
    const bool all = show_held_back(others);
    if (const Stamp missing = rebase_pinned(); !missing.is_none()) return missing;
    if (!all || release_.needed().any()) {
        return {self_, release_.number()};
    }
    acquire_.count_as_acquired();
    for (std::uint32_t node = 0; node < acquire_.applied().size(); ++node)
        debts_.board().show_acquired(NodeId{node}, acquire_.applied()[node]);
    acquire_.end(expired_to);
    return {};
}

// The first release, not acquired yet, that some of the acquired bytes were read from; none: there
// is no such release.
Stamp Node::open_need() noexcept {
    ReleaseNumber shown_up_to;
    const Stamp missing = news_.open_need(acquire_.applied(), shown_up_to);
    if (missing.is_none()) held_back_.may_show_up_to(shown_up_to);
    return missing;
}

// Extents may overlap, and a block that was made stale keeps its latch until all are unmapped.
void Node::apply_taken() noexcept {
    std::uint64_t end = 0;
    const std::span<const Notice> taken = acquire_.taken();
    for (std::size_t i = 0; i < taken.size(); ++i) {
        const Notice& notice = taken[i];
        if (notice.node == self_ || (i > 0 && taken[i - 1].same_blocks(notice))) continue;
        if (notice.block < end) finish_invalidations();
        end = std::max(end, std::uint64_t{notice.block} + notice.count);
        for (std::uint32_t at = 0; at < notice.count; ++at)
            apply_to_block(notice.block + at, notice);
    }
}

// Joins the news into the signature (causality through a third node needs it) and sorts them by
// block, the newest of each extent first. Raises min_wts before anything is looked at.
void Node::take_pending() noexcept {
    acquire_.join(news_);
    const std::span<Notice> taken = acquire_.taken();
    std::sort(taken.begin(), taken.end(), [](const Notice& a, const Notice& b) {
        if (a.block != b.block) return a.block < b.block;
        return a.count != b.count ? a.count < b.count : a.wts > b.wts;
    });
}

void Node::apply_to_block(BlockId block, const Notice& notice) noexcept {
    if (acquire_.invalidation().is_full()) finish_invalidations();
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
    return entry.follow.stale_in == acquire_.rounds();
}

// With the latch. What has been used after it became stale, several times in a row, is brought up
// to date in place; now and then it is left to a fault, ever less often, to see whether it still
// is. What both nodes have written between the same two synchronizations needs no history: nothing
// but a write of this node brings it here again.
bool Node::is_followed(BlockId block) noexcept {
    if (!acquire_.follows()) return false;
    if (options_.follow_all) return true;
    const Stamp own = copies_.own_stamp(block);
    if (!own.is_none() && own.writer() == self_ && own.release() == release_.number()) return true;
    BlockEntry& entry = entries_[block];
    if (entry.follow.uses < followed_min) return false;
    if (++entry.follow.brought < 1u << entry.follow.uses) return true;
    entry.follow.brought = 0;
    return false;
}

// With the latch. Its bytes came along with its notice.
bool Node::has_come(BlockId block) noexcept {
    if (!joins()) return false;
    const BlockEntry& entry = entries_[block];
    const std::uint64_t base = copies_.own_wts(block).value + 1;
    return acquire_.follows() && entry.notice_wts != Timestamp{} &&
           copies_.came().find(block, entry.notice_node, entry.notice_wts, base).has_value();
}

// With the latch, which it opens. A thread that runs may see the new bytes of a pinned block at
// once: all others that are stale are made inaccessible first.
void Node::put_off(BlockId block) noexcept {
    if (!entries_[block].stale.pinned) {
        entries_[block].stale.pinned = true;
        acquire_.put_off(block);
    }
    entries_[block].latch.unlock();
}

// In the acquire role: what was needed for them has been acquired. Where a thread may be running, a
// block that need not stay accessible is made stale: its next access finds all bytes. False: of the
// release under way there are others.
bool Node::show_held_back(Others others) noexcept {
    const bool all = held_back_.show_all([&](BlockId block) {
        if (acquire_.invalidation().is_full()) finish_invalidations();
        BlockEntry& entry = entries_[block];
        entry.latch.lock();
        const bool stays = !held_back_.may_show(entry);
        entry.withheld.listed = stays;
        const bool in_place = !entry.held_back || others == Others::stopped || must_stay(block);
        if (!stays && !in_place && readable(entry.state)) {
            make_stale(block);
            return false;
        }
        if (!stays) held_back_.stop(block);
        entry.latch.unlock();
        return stays;
    });
    finish_invalidations();
    return all;
}

// In place. What is missing before that may be done to the last of them; none: all are current.
// Whose bytes were written after what is acquired here, and need not stay, is made inaccessible
// after all: nobody waits for another node's release before somebody asks for them, and whether the
// program first reads or writes it is seen (early_blocks.hpp).
Stamp Node::rebase_pinned() noexcept {
    if (joins()) rebase_together();
    for (; !acquire_.put_off_blocks().empty(); acquire_.drop_put_off()) {
        const BlockId block = acquire_.put_off_blocks().back();
        BlockEntry& entry = entries_[block];
        entry.latch.lock();
        Stamp missing;
        if (readable(entry.state)) {
            const bool clean = may_be_overwritten(block);
            missing = bring_current(block, clean ? BlockWork::fetch : BlockWork::rebase);
        }
        const bool stays = missing.is_none() || must_stay(block);
        entry.stale.pinned = stays && !missing.is_none();
        if (stays) {
            entry.latch.unlock();
            if (!missing.is_none()) return missing;
            continue;
        }
        acquire_.follow_nothing();
        make_stale(block);
        finish_invalidations();
    }
    return {};
}

// With the latch held; a pinned block's is opened here, others' by finish_invalidations().
void Node::make_stale(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    guess_.read_ahead.spread().stale(block);
    entry.stale.aside = acquire_.is_aside();
    if (entry.pins > 0) return put_off(block);
    if (entry.state != BlockState::pinned && (is_followed(block) || has_come(block))) {
        count(&PlaceCounters::followed);
        return put_off(block);
    }
    if (entry.state == BlockState::pinned && !is_pinned(offset_of(block))) {
        entry.state = take(entry, BlockEvent::unpinned).next;
    }
    const BlockStep next = take(entry, BlockEvent::stale);
    entry.state = next.next;
    if (has(next.work, BlockWork::rebase)) return put_off(block);
    acquire_.invalidation().add(block, program_range(block));
}

// With the latch. No thread of the program sees the private copy before the acquire ends, and it
// holds nothing but what was merged: as if it were inaccessible.
bool Node::may_be_overwritten(BlockId block) noexcept {
    const BlockEntry& entry = entries_[block];
    return acquire_.stopped() && entry.state == BlockState::readonly && !entry.held_back &&
           !must_stay(block) && !has_changed(block);
}

void Node::finish_invalidations() noexcept {
    Invalidation& stale = acquire_.invalidation();
    if (stale.is_empty()) return;
    engine_->unmap(stale.ranges());
    for (const BlockId block : stale.blocks()) {
        BlockEntry& entry = entries_[block];
        // A block that was only readable too: a write may have come between a release's look at it
        // and its end.
        const bool changed = has_changed(block);
        held_back_.stop(block);  // no thread sees it
        const BlockStep next =
            take(entry, changed ? BlockEvent::found_changed : BlockEvent::found_equal);
        if (has(next.work, BlockWork::remember)) put_on_unmerged(block);
        entry.state = next.next;
        entry.follow.stale_in = acquire_.rounds();
        entry.latch.unlock();
    }
    stale.clear();
}

void Node::expire_leases() noexcept {
    LeaseQueue::Lease lease;
    while (leases_.pop_before(min_wts(), lease)) {
        if (acquire_.invalidation().is_full()) finish_invalidations();
        BlockEntry& entry = entries_[lease.block];
        entry.latch.lock();
        entry.queued = false;
        // NOLINTNEXTLINE(bugprone-branch-clone): in this order.
        if (!readable(entry.state)) {
            entry.latch.unlock();
        } else if (entry.rts >= min_wts()) {
            set_lease(lease.block, entry.rts);
            entry.latch.unlock();
        } else if (keeps_lock(entry.state) || lock_.is_here(lease.block)) {
            entry.latch.unlock();  // a home's copy needs no lease: look_at_moved()
        } else {
            count(&PlaceCounters::lease_expiries);
            make_stale(lease.block);
        }
    }
}

// Makes a block that this node was the home of a copy like any reader's, good until the time that
// readers were given when the lock went. Writes on other nodes since, told of or dropped on their
// way here, were marked before that. This is done also when min_wts has not risen: a home's copy
// may be older than any that readers have left, and so may be the next write.
void Node::look_at_moved() noexcept {
    moved_.take([&](BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        if (!readable(entry.state) || keeps_lock(entry.state)) return;
        if (lock_.is_here(block)) return;
        set_lease(block, std::max(entry.rts, lock_.rts_when_it_went(block)));
    });
}

}  // namespace hiroba::dsm
