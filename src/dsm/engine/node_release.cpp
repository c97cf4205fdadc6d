// SPDX-License-Identifier: BSD-3-Clause
// Role: the release: everything this node's threads have written becomes available to whoever
// acquires. Re-arm write tracking, then look at each block reported or remembered as unmerged.
// Invariant: what is merged was read after tracking was re-armed, so that what is written later is
// reported again; live private copies get foreign bytes only (invariant 9).
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

// A release is the node's: whoever comes while one runs waits and runs its own, because the
// running one may have looked before the waiter's last write.
void Node::release(Others others) noexcept {
    if (before_release_ != nullptr) before_release_();
    if (others == Others::stopped) give_up_expected();
    if (has_nothing_to_release()) return;
    on_runtime_stack([&] { release_on_runtime_stack(others); });
}

// A synchronization with nothing to say costs a few loads, where the engine knows that nothing was
// written. In this order: an acquire that takes a block from the engine puts it on the list before
// it ends, and a release that takes one from either has its role until it has merged it.
bool Node::has_nothing_to_release() noexcept {
    if (engine_->has_written()) return false;
    acquire_.await_open();
    // Pairs with leave_atomic().
    if (debt_.load(std::memory_order_acquire) > completed_.load(std::memory_order_acquire))
        return false;
    if (unmerged_count_.load(std::memory_order_acquire) != 0) return false;  // as gather_work()
    release_.await_open();
    note_release();
    return true;
}

// Called by many threads at once, and then told of any of them.
void Node::note_release() noexcept {
    count(&PlaceCounters::releases);
    // A region's is its function, the others' lie behind a call: all as the latter.
    const SyncPlace place = this_thread().place;
    last_synchronized_.store(place.address + (place.kind == SyncKind::region ? 1 : 0),
                             std::memory_order_relaxed);
}

void Node::release_on_runtime_stack(Others others) noexcept {
    const Timed timed{*this, &PlaceCounters::release_ns};
    const std::scoped_lock role{release_};
    note_release();
    begin_release();
    gather_work(others);
    trace("dsm.release", work_count_);
    merge_until_quiet(others);
    end_release();
}

// With the release role, until end_release(). What is written from here on may come too late for
// this release, and is in the next.
void Node::begin_release() noexcept {
    begun_.fetch_add(1, std::memory_order_seq_cst);  // pairs with owe_release()
    made_count_ = merged_count_ = 0;
    had_work_ = false;
    release_wts_ = {};
}

// What other threads have written while this one looked at one block after the other may lie in
// blocks that it has passed, and be older than what it found behind them. So it looks again, until
// nothing more was written; all of it is one release, and nobody sees some of it (invariant 14).
// Threads that never stop writing get the last of these looks without another behind it.
void Node::merge_until_quiet(Others others) noexcept {
    constexpr unsigned looks_max = 8;
    merge_work(others);
    if (others == Others::stopped) return;
    std::size_t merged_before = 0;
    for (unsigned looks = 1; looks < looks_max && merged_count_ > merged_before; ++looks) {
        if (!engine_->has_written() && unmerged_count_.load(std::memory_order_acquire) == 0) return;
        merged_before = merged_count_;
        gather_work(others);
        drop_unchanged_work();
        if (made_count_ + work_count_ > made_.size()) return put_off_work();
        merge_work(others);
    }
}

// All in one piece: another thread's news have all of a release or nothing.
void Node::end_release() noexcept {
    const ReleaseNumber release = begun_.load(std::memory_order_relaxed);  // with the role
    {
        const std::scoped_lock guard{signature_latch_};
        for (std::size_t i = 0; i < made_count_; ++i) signature_.add(made_[i], known_to_all());
        const bool owed = debt_.load(std::memory_order_seq_cst) >= release;
        if (had_work_ || owed) end_epoch();  // atomics are noted, too
        Clock& own = clocks_[self_.value];
        own.told = own.needed = release;
        own.epoch = this_change().epoch;
        // No node has heard of a release that made nothing and that no atomic owes.
        if (made_count_ > 0 || owed) {
            own.changed = signature_.mark();
            note_untold();
        }
        if (made_needs_any_.load(std::memory_order_relaxed)) take_over_needs();
        completed_.store(release, std::memory_order_release);  // pairs with pay(), may_show()
        if (made_count_ > 0) trim_signature();
    }
    const bool unasked = made_count_ > 0 && show_unasked_.load(std::memory_order_relaxed) > 0;
    if (unasked) show_unasked_.fetch_sub(1, std::memory_order_relaxed);
    if (unasked || has_to_pay()) show_news();
}

// Under signature_latch_.
void Node::take_over_needs() noexcept {
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) {
        if (made_needs_[node] > clocks_[node].needed) {
            clocks_[node].needed = made_needs_[node];
            clocks_[node].changed = signature_.mark();
        }
        // Relaxed: an acquire that ends now finds this under the latch.
        if (node != self_.value &&
            clocks_[node].needed > acquired_[node].load(std::memory_order_relaxed)) {
            needs_open_.store(true, std::memory_order_release);  // pairs with may_show()
        }
    }
    made_needs_any_.store(false, std::memory_order_release);  // pairs with open_need()
}

// The blocks to look at: what was written since the last time, and what holds unmerged bytes
// unseen by write tracking. Not while another thread applies news: a block that is being
// invalidated is reported no more and not yet remembered, and a lock would be handed on without
// what its holder wrote there.
void Node::gather_work(Others others) noexcept {
    const std::scoped_lock role{acquire_};
    work_count_ = 0;
    engine_->collect(*this);
    if (others == Others::stopped) engine_->adapt();
    reported_count_ = work_count_;
    // What this thread has left unmerged it sees, and what others have that it must know of.
    if (unmerged_count_.load(std::memory_order_acquire) == 0) return;  // pairs with put_on_unmerged
    const std::scoped_lock guard{unmerged_latch_};
    const std::size_t count = unmerged_count_.load(std::memory_order_relaxed);  // under the latch
    std::memcpy(work_.data() + work_count_, unmerged_.data(), count * sizeof(BlockId));
    work_count_ += count;
    unmerged_count_.store(0, std::memory_order_relaxed);
}

// Tracking is re-armed: what is equal now and changes later will be reported again.
void Node::drop_unchanged_work() noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < work_count_; ++i) {
        BlockEntry& entry = entries_[work_[i]];
        const std::scoped_lock guard{entry.latch};
        entry.unmerged = false;
        if (i < reported_count_) entry.state = take(entry, BlockEvent::written).next;
        if (has_changed_unless_watched(work_[i])) {
            work_[kept++] = work_[i];
            continue;
        }
        note_unchanged(entry);
        if (!settled(entry.state)) {
            entry.state = take(entry, BlockEvent::merged).next;
        }
    }
    work_count_ = kept;
    reported_count_ = 0;
}

// It was taken for writing in vain; but what it was given up with was written.
void Node::note_unchanged(BlockEntry& entry) noexcept {
    if (!std::exchange(entry.merging.given_up, false)) entry.write_guess = 0;
}

void Node::merge_work(Others others) noexcept {
    if (!joins_) {
        for (std::size_t i = 0; i < work_count_; ++i) {
            BlockEntry& entry = entries_[work_[i]];
            const std::scoped_lock guard{entry.latch};
            if (!begin_merge(i)) continue;
            merge(work_[i], others);
            entry.state = take(entry, BlockEvent::merged).next;
        }
    } else {
        for (std::size_t i = 0; i < work_count_;) i = merge_together(i, others);
    }
    had_work_ |= work_count_ > 0;
}

// With the latch. False: there is nothing to be merged, and the block is done.
bool Node::begin_merge(std::size_t at) noexcept {
    BlockEntry& entry = entries_[work_[at]];
    entry.unmerged = false;
    if (at < reported_count_) {
        if (entry.state == BlockState::readonly) note_write_after_read(entry);
        entry.state = take(entry, BlockEvent::written).next;
    }
    if (settled(entry.state)) return false;  // since it was reported
    if (has_changed_unless_watched(work_[at])) {
        entry.merging.given_up = false;
        return true;
    }
    note_unchanged(entry);
    entry.state = take(entry, BlockEvent::merged).next;
    return false;
}

// They are what a look behind a long release has found: the next release begins with them.
void Node::put_off_work() noexcept {
    for (std::size_t i = 0; i < work_count_; ++i) {
        BlockEntry& entry = entries_[work_[i]];
        const std::scoped_lock guard{entry.latch};
        put_on_unmerged(work_[i]);
    }
}

// Blocks in a row that were merged at the same time are one notice.
void Node::note_made(BlockId block, Timestamp wts, Timestamp rts) noexcept {
    ++merged_count_;
    const Notice next{wts, rts, block, self_};
    if (made_count_ > 0 && made_[made_count_ - 1].goes_on_with(next)) {
        ++made_[made_count_ - 1].count;
        return;
    }
    HIROBA_INVARIANT(made_count_ < made_.size(), "%lu notices made", made_count_);
    made_[made_count_++] = next;
    count(&PlaceCounters::notices_made);
}

void Node::written(AddressRange range) noexcept {
    for_blocks(reinterpret_cast<const void*>(range.address), range.bytes, [&](BlockId block) {
        // Read without the latch to sort out pages that are not mapped: a state that changes now
        // was settled by a fault or an acquire after tracking was re-armed, which reports anew.
        const BlockState state = entries_[block].state;
        if (settled(state) || state == BlockState::invalidating) return;
        if (work_count_ > 0 && work_[work_count_ - 1] == block) return;
        HIROBA_INVARIANT(work_count_ < work_.size(), "%lu written blocks", work_count_);
        work_[work_count_++] = block;
    });
}

// Where a thread flushes, its program's stack has frames of ours: each flush would find them
// changed, and tell all nodes.
bool Node::has_changed(BlockId block) noexcept {
    const std::byte* const ours = private_copy(block);
    const std::byte* const twin = twin_of(block);
    const ThreadContext& thread = this_thread();
    if (thread.frames_end == 0) return differs(ours, twin, block_bytes_);
    const std::uintptr_t at = program_range(block).address;
    const std::size_t begin = std::clamp(thread.frames_begin, at, at + block_bytes_) - at;
    const std::size_t end = std::clamp(thread.frames_end, at, at + block_bytes_) - at;
    if (begin == end) return differs(ours, twin, block_bytes_);
    return std::memcmp(ours, twin, begin) != 0 ||
           std::memcmp(ours + end, twin + end, block_bytes_ - end) != 0;
}

// A page that the engine leaves open is compared at each release: about as often as costs what the
// fault of its next write will, and then it is watched. Looked at once more behind that: what comes
// later is reported. A stack is not watched, since the kernel writes there without a fault: what no
// other node reads of it is merged once in a while, as if it were changed, and becomes exclusive.
// With the block's latch.
bool Node::has_changed_unless_watched(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (has_changed(block)) {
        entry.merging.vain = 0;
        return true;
    }
    if (++entry.merging.vain < options_.vain_max) return false;
    entry.merging.vain = 0;
    if (is_pinned(offset_of(block))) return is_unread(block);
    if (!readable(entry.state) || entry.state == BlockState::pinned || must_stay(block))
        return false;
    engine_->watch(program_range(block));
    return has_changed(block);
}

// Most blocks have been merged here before and by nobody since: what differs goes straight from the
// private copy to the public one, each line as it was when it was read. A write that comes later
// is reported anew.
void Node::merge(BlockId block, Others others) noexcept {
    LockToken token;
    if (!lock_.try_lock_here(block, token)) return merge_with_home(block, std::nullopt, others);
    merge_locked(block, token, others);
}

void Node::merge_locked(BlockId block, const LockToken& token, Others others) noexcept {
    if (!has_bytes_of(token, block) || entries_[block].held_back)
        return merge_with_home(block, token, others);
    if (may_be_exclusive(block, token) && make_exclusive(block)) return;
    publish_live(block, token);
}

/// No node has merged the block since this node's public copy was made.
void Node::publish_live(BlockId block, const LockToken& token) noexcept {
    const std::byte* const live = private_copy(block);
    if (entries_[block].early) [[unlikely]]
        look_for_unordered(block, live, copies_.own(block));
    publish_merged(block, token, [&](Version next) {
        note_in_log(block, [&](std::uint64_t* noted) {
            copies_.publish_changes(block, live, next, noted);
        });
    });
}

/// @param held   the block's lock, if this node has it already
/// @param brought  where the home's copy was read with the lock, if it was
void Node::merge_with_home(BlockId block, std::optional<LockToken> held, Others others,
                           PublicCopies::Reading* brought) noexcept {
    std::byte* const live = private_copy(block);
    const std::byte* const twin = twin_of(block);
    const Scratch snapshot{scratch_};
    const auto take_snapshot = [&] { std::memcpy(snapshot.get(), live, block_bytes_); };
    if (others == Others::running) take_snapshot();

    const Scratch home{scratch_};
    const Scratch result{scratch_};
    PublicCopies::Reading alone{copies_, block, home.get()};
    PublicCopies::Reading& reading = brought != nullptr ? *brought : alone;
    std::byte* const theirs = reading.bytes();
    bool& meets_others = entries_[block].merging.meets_others;
    const LockToken token = held ? *held : lock_.lock(block, meets_others ? &reading : nullptr);
    if (others == Others::stopped) take_snapshot();
    const std::byte* const ours = snapshot.get();
    meets_others = !has_bytes_of(token, block);
    if (!meets_others) {
        if (!entries_[block].held_back) return publish_live(block, token);
        merge_block(ours, twin, copies_.own(block), result.get(), block_bytes_);
        note_own_changes(block, ours, twin);
        hold_back(block, ours);
    } else {
        auto read = reading.read_from(token.home);
        if (!read || read->wts != token.wts) read = copies_.read(token.home, block, theirs);
        count(&PlaceCounters::bytes_fetched, block_bytes_);
        const MergeOutcome outcome = merge_block(ours, twin, theirs, result.get(), block_bytes_);
        if (is_worth_telling(outcome)) report_races(block, {ours, twin, theirs}, token.home);
        note_own_changes(block, ours, twin);
        const bool holds =
            outcome.foreign ? must_hold_back(block, read->stamp) : entries_[block].held_back;
        if (holds) {
            hold_back(block, ours);
        } else if (outcome.foreign) {
            store_foreign(live, ours, twin, theirs, block_bytes_);
        }
    }
    publish_merged(block, token, [&](Version next) { copies_.publish(block, result.get(), next); });
}

void Node::note_own_changes(BlockId block, const std::byte* ours, const std::byte* twin) noexcept {
    if (entries_[block].early) [[unlikely]]
        look_for_unordered(block, ours, twin);
    note_in_log(block, [&](std::uint64_t* noted) {
        if (noted != nullptr) note_changes(ours, twin, block_bytes_, noted);
    });
}

// What the home had of others is in the public copy and must be acquired by whoever reads that.
// This node cannot wait for it here: the others' releases may wait likewise.
bool Node::must_hold_back(BlockId block, Stamp stamp) noexcept {
    // In one order with what acquire_round() does: it sees this, or is seen below.
    made_needs_any_.store(true, std::memory_order_seq_cst);
    if (stamp.is_none()) return entries_[block].held_back;
    if (stamp.writer() == self_) {
        return entries_[block].held_back || needs_open_.load(std::memory_order_acquire);
    }
    const std::uint32_t writer = stamp.writer().value;
    made_needs_[writer] = std::max(made_needs_[writer], stamp.release());
    return entries_[block].held_back ||
           inaccessible_[writer].load(std::memory_order_seq_cst) < stamp.release();
}

// The private copy stays as it is, what others wrote apart, until that is acquired: it is the twin
// of its own changes meanwhile. With the block's latch.
void Node::hold_back(BlockId block, const std::byte* ours) noexcept {
    BlockEntry& entry = entries_[block];
    std::memcpy(bases_.data() + offset_of(block), ours, block_bytes_);
    entry.held_back_by = begun_.load(std::memory_order_relaxed);  // with the release role
    if (entry.held_back) return;
    entry.held_back = true;
    if (entry.held_back_listed) return;
    entry.held_back_listed = true;
    const std::scoped_lock guard{unmerged_latch_};
    HIROBA_INVARIANT(held_back_count_ < held_back_.size(), "%lu blocks held back",
                     held_back_count_);
    held_back_[held_back_count_++] = block;
}

// With the block's latch.
void Node::stop_holding_back(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (!entry.held_back) return;
    const Scratch seen{scratch_};
    std::memcpy(seen.get(), private_copy(block), block_bytes_);
    store_foreign(private_copy(block), seen.get(), twin_of(block), copies_.own(block),
                  block_bytes_);
    entry.held_back = false;
}

// A later release than this one, if an atomic of another thread owes that.
Stamp Node::stamp_of_merge(BlockId block) noexcept {
    const Stamp own = copies_.own_stamp(block);
    const Stamp mine{self_, begun_.load(std::memory_order_relaxed)};  // with the release role
    const bool later = !own.is_none() && own.writer() == self_ && own.release() > mine.release();
    return later ? own : mine;
}

/// With the block's lock, which it opens: publish(version) makes the public copy what was merged.
template <class Publish>
void Node::publish_merged(BlockId block, const LockToken& token, Publish&& publish) noexcept {
    if (token.home != self_) count(&PlaceCounters::home_migrations);
    // Not before what this release has merged already: later than need be does no harm, and one
    // time for many blocks makes one notice of them.
    const Timestamp wts = std::max(write_time(token.rts, min_wts()), release_wts_);
    release_wts_ = wts;
    HIROBA_INVARIANT(wts > token.rts && wts > token.wts,
                     "block %u: written at %lu, read until %lu (invariant 3)", block, wts.value,
                     token.rts.value);
    const Timestamp rts = wts.after(options_.lease);
    note_streak(block, token);
    publish(Version{wts, stamp_of_merge(block), this_change()});
    BlockEntry& entry = entries_[block];
    // A node that knows of the first of several such versions goes to the home, and leaves a trace,
    // for each of them.
    const bool goes_on = entry.trial.wts != Timestamp{} && entry.trial.wts == token.wts &&
                         token.home == self_ && !token.read;
    const bool tried = is_to_be_tried(entry, token);
    if (tried) {
        entry.trial.wts = wts;
        if (!goes_on) entry.trial.by = begun_.load(std::memory_order_relaxed);  // with the role
    }
    entries_[block].notice_wts = {};
    // No lease in the queue: if another node takes the lock now it marks the block, and the acquire
    // that has to know of its write waits for this latch.
    entries_[block].rts = rts;
    entries_[block].brought = false;
    lock_.unlock(block, {self_, wts, rts});
    note_made(block, wts, tried ? Timestamp{} : rts);
    count(&PlaceCounters::blocks_merged);
    trace("dsm.merge", block, wts.value);
}

void Node::add_own_notice(BlockId block, Timestamp wts, Timestamp rts) noexcept {
    const std::scoped_lock guard{signature_latch_};
    signature_.add({wts, rts, block, self_}, known_to_all());
    note_untold();
    count(&PlaceCounters::notices_made);
}

}  // namespace hiroba::dsm
