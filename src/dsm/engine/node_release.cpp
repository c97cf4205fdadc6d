// SPDX-License-Identifier: BSD-3-Clause
// Role: the release: everything this node's threads have written becomes available to whoever
// acquires. Re-arm write tracking, then look at each block reported or remembered as unmerged.
// Invariant: what is merged was read after tracking was re-armed, so that what is written later is
// reported again; live private copies get foreign bytes only (invariant 9).
#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

// A release is the node's: whoever comes while one runs waits and runs its own, because the
// running one may have looked before the waiter's last write.
void Node::release(Others others) noexcept {
    if (before_release_ != nullptr) before_release_();
    if (has_nothing_to_release()) return;
    on_runtime_stack([&] { release_on_runtime_stack(others); });
}

// A synchronization with nothing to say costs a few loads, where the engine knows that nothing was
// written. In this order: an acquire that takes a block from the engine puts it on the list before
// it ends, and a release that takes one from either has its role until it has merged it.
bool Node::has_nothing_to_release() noexcept {
    if (engine_->has_written()) return false;
    acquire_.await_open();
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
    gather_work();
    trace("dsm.release", work_count_);
    merge_work(others);
}

// The blocks to look at: what was written since the last time, and what holds unmerged bytes
// unseen by write tracking. Not while another thread applies news: a block that is being
// invalidated is reported no more and not yet remembered, and a lock would be handed on without
// what its holder wrote there.
void Node::gather_work() noexcept {
    const std::scoped_lock role{acquire_};
    work_count_ = 0;
    engine_->collect(*this);
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
        if (differs(private_copy(work_[i]), copies_.own(work_[i]), block_bytes_)) {
            work_[kept++] = work_[i];
            continue;
        }
        entry.write_guess = 0;
        if (!settled(entry.state)) {
            entry.state = take(entry, BlockEvent::merged).next;
        }
    }
    work_count_ = kept;
    reported_count_ = 0;
}

void Node::merge_work(Others others) noexcept {
    release_wts_ = {};
    for (std::size_t i = 0; i < work_count_; ++i) {
        BlockEntry& entry = entries_[work_[i]];
        const std::scoped_lock guard{entry.latch};
        entry.unmerged = false;
        if (i < reported_count_) {
            if (entry.state == BlockState::readonly) note_write_after_read(entry);
            entry.state = take(entry, BlockEvent::written).next;
        }
        if (settled(entry.state)) continue;  // since it was reported
        merge(work_[i], others);
        entry.state = take(entry, BlockEvent::merged).next;
    }
    if (work_count_ > 0) tell_of_made();
}

void Node::tell_of_made() noexcept {
    const std::scoped_lock guard{signature_latch_};
    for (std::size_t i = 0; i < made_count_; ++i) signature_.add(made_[i], known_to_all());
    if (made_count_ > 0) note_untold();
    made_count_ = 0;
    end_epoch();
    trim_signature();
}

// Blocks in a row that were merged at the same time are one notice.
void Node::note_made(BlockId block, Timestamp wts, Timestamp rts) noexcept {
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

// Most blocks have been merged here before and by nobody since: what differs goes straight from the
// private copy to the public one, each line as it was when it was read. A write that comes later
// is reported anew.
void Node::merge(BlockId block, Others others) noexcept {
    const std::byte* const live = private_copy(block);
    if (!differs(live, copies_.own(block), block_bytes_)) {
        entries_[block].write_guess = 0;
        return;
    }
    LockToken token;
    if (!lock_.try_lock_here(block, token)) return merge_with_home(block, std::nullopt, others);
    if (!has_bytes_of(token, block)) return merge_with_home(block, token, others);
    publish_live(block, token);
}

/// Nobody has merged the block since this node's public copy was made.
void Node::publish_live(BlockId block, const LockToken& token) noexcept {
    const std::byte* const live = private_copy(block);
    if (entries_[block].early) [[unlikely]]
        look_for_unordered(block, live, copies_.own(block));
    publish_merged(block, token, [&](Timestamp wts) {
        copies_.publish_changes(block, live, wts, this_change(), changes_in(block));
    });
}

/// @param held  the block's lock, if this node has it already
void Node::merge_with_home(BlockId block, std::optional<LockToken> held, Others others) noexcept {
    std::byte* const live = private_copy(block);
    const std::byte* const twin = copies_.own(block);
    const Scratch snapshot{scratch_};
    const auto take_snapshot = [&] { std::memcpy(snapshot.get(), live, block_bytes_); };
    if (others == Others::running) take_snapshot();

    const Scratch home{scratch_};
    const Scratch result{scratch_};
    PublicCopies::Reading reading{copies_, block, home.get()};
    const LockToken token = held ? *held : lock_.lock(block, &reading);
    if (has_bytes_of(token, block)) {
        return publish_live(block, token);
    }
    if (reading.read_from(token.home) != token.wts) {
        LastChange last;
        copies_.read(token.home, block, home.get(), last);
    }
    count(&PlaceCounters::bytes_fetched, block_bytes_);
    if (others == Others::stopped) take_snapshot();
    const std::byte* const ours = snapshot.get();
    const MergeOutcome outcome = merge_block(ours, twin, home.get(), result.get(), block_bytes_);
    if (outcome.foreign) store_foreign(live, ours, twin, home.get(), block_bytes_);
    if (is_worth_telling(outcome)) report_races(block, {ours, twin, home.get()}, token.home);
    if (entries_[block].early) [[unlikely]]
        look_for_unordered(block, ours, twin);
    if (std::uint64_t* const noted = changes_in(block)) {
        note_changes(ours, twin, block_bytes_, noted);
    }
    publish_merged(block, token, [&](Timestamp wts) {
        copies_.publish(block, result.get(), wts, this_change());
    });
}

/// With the block's lock, which it opens: publish(wts) makes the public copy what was merged.
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
    publish(wts);
    entries_[block].notice_wts = {};
    // No lease in the queue: if another node takes the lock now it marks the block, and the acquire
    // that has to know of its write waits for this latch.
    entries_[block].rts = rts;
    lock_.unlock(block, {self_, wts, rts});
    note_made(block, wts, rts);
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
