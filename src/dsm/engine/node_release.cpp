// SPDX-License-Identifier: BSD-3-Clause
// Role: the release: everything this node's threads have written becomes available to whoever
// acquires. Re-arm write tracking, then look at each block reported or remembered as unmerged.
// Invariant: what is merged was read after tracking was re-armed, so that what is written later is
// reported again; live private copies get foreign bytes only (invariant 9).
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/sync_place.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/guess/bounded_wait.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

// A release is the node's: whoever comes while one runs waits and runs its own, because the
// running one may have looked before the waiter's last write.
void Node::release(Others others) noexcept {
    release_.call_hook();
    if (is_alone_) return note_release();
    if (others == Others::stopped || hands_over_all()) give_up_expected();
    if (!has_nothing_to_release()) on_runtime_stack([&] { release_on_runtime_stack(others); });
    flush_for_spins(others);
}

// A synchronization with nothing to say costs a few loads, where the engine knows that nothing was
// written. In this order: an acquire that takes a block from the engine puts it on the list before
// it ends, and a release that takes one from either has its role until it has merged it.
bool Node::has_nothing_to_release() noexcept {
    if (engine_->has_written() || release_.numbers().any_taken()) return false;
    acquire_.await_open();
    // Pairs with leave_atomic().
    if (release_.numbers().has_debt() || release_.unmerged().any()) return false;
    release_.await_open();
    note_release();
    return true;
}

// Called by many threads at once, and then told of any of them.
void Node::note_release() noexcept {
    count(&PlaceCounters::releases);
    races_.note_synchronization(this_thread().place);
}

void Node::release_on_runtime_stack(Others others) noexcept {
    const Timed timed{statistics_, &PlaceCounters::release_ns};
    const RecordedWork recorded{RecordKind::release};
    const std::scoped_lock role{release_};
    note_release();
    ask_what_is_acquired();
    begin_release();
    gather_work(others);
    trace("dsm.release", release_.work().size());
    merge_until_quiet(others);
    end_release();
}

// With the role. Atomics without a call note no release: those before this one are told by it, and
// those that come later find their block closed, or make the next one owed.
void Node::begin_release() noexcept {
    close_held_passes();
    release_.begin();
    close_held_passes();  // opened by who has not seen that it begins
}

// What has to be known to all before a block becomes this node's own is known so where nodes meet
// seldom, and pass locks instead.
void Node::ask_what_is_acquired() noexcept {
    constexpr ReleaseNumber every_of_node = 16;
    ReleaseNumber every = options_.asks_every;
    if (every == MemoryOptions::never_asks) return;
    if (every == 0) every = copies_.all_mapped() ? 1 : every_of_node * endpoint_.nodes();
    news_.ask_if_wanted(every, [this] { return debts_.board().acquired_by_all(); });
}

// Looks again for what other threads have written while this thread looked at one block after the
// other: such writes may lie in blocks that it has passed, and be older than what it found behind
// them. It looks until nothing more was written. All of it is one release, and no node sees only a
// part (invariant 14). Threads that write without end are stopped meanwhile at their next fault
// (await_last_look), which they come upon at what they have written before.
void Node::merge_until_quiet(Others others) noexcept {
    constexpr unsigned looks_max = 64;
    constexpr unsigned looks_before_hiding = 2;
    // Where first writes make no fault of their own, the next access does.
    const auto hide = [&](BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        const bool is_plain = entry.state == BlockState::readonly ||
                              entry.state == BlockState::readonly_dirty ||
                              entry.state == BlockState::writable;
        if (!is_plain || entry.pins > 0 || must_stay(block) || is_pinned(offset_of(block))) return;
        const AddressRange range = program_range(block);
        engine_->unmap({&range, 1});
    };
    merge_work(others);
    if (others == Others::stopped) return;
    std::size_t merged_before = 0;
    for (unsigned looks = 1; looks < looks_max && release_.merged() > merged_before; ++looks) {
        if (!engine_->has_written() && !release_.unmerged().any()) break;
        merged_before = release_.merged();
        release_.stop_writers(true);
        gather_work(others);
        drop_unchanged_work(Look::again);
        if (!release_.has_room()) {
            put_off_work();
            break;
        }
        if (looks >= looks_before_hiding) {
            release_.hide_written(true);
            for (const BlockId block : release_.work()) hide(block);
        }
        merge_work(others);
    }
    release_.hide_written(false);
    release_.stop_writers(false);
}

// Before a fault, with nothing held. Bounded: the release may wait for another node, and what it
// then publishes is ordered but for what this thread writes next.
void Node::await_last_look() noexcept {
    constexpr std::uint64_t longest_ns = 20'000'000;
    if (!release_.stops_writers()) return;
    for (BoundedWait wait{now_ns(), longest_ns}; release_.stops_writers() && !wait.is_over();)
        wait.pause();
}

// All in one piece: another thread's news have all of a release or nothing.
void Node::end_release() noexcept {
    const KnownNews::Made made = release_.made();
    news_.end_release(made, release_.needed(), acquire_.acquired());
    guess_.rhythm.note(release_.merged());
    debts_.show_if_wanted(!made.notices.empty());
}

// The blocks to look at: what was written since the last time, and what holds unmerged bytes
// unseen by write tracking. Not while another thread applies news: a block that is being
// invalidated is reported no more and not yet remembered, and a lock would be handed on without
// what its holder wrote there.
void Node::gather_work(Others others) noexcept {
    const std::scoped_lock role{acquire_};
    release_.gather([&] {
        engine_->collect(*this);
        if (others == Others::stopped) engine_->adapt();
    });
}

// Tracking is re-armed: what is equal now and changes later will be reported again. A look that is
// not a release's first keeps what has changed alone: a stack that was merged without a change
// would make each look lead to another, until the last of them has none behind it.
void Node::drop_unchanged_work(Look look) noexcept {
    release_.keep_of_work([&](std::size_t at, BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        entry.unmerged = false;
        if (release_.is_reported(at)) entry.state = take(entry, BlockEvent::written).next;
        if (entry.state == BlockState::held) return true;
        const bool again = look == Look::again;
        if (again ? has_changed(block) : has_changed_unless_watched(block)) return true;
        note_unchanged(entry);
        if (!settled(entry.state)) {
            entry.state = take(entry, BlockEvent::merged).next;
        }
        return false;
    });
}

// The block was taken for writing in vain, unless it has been given up since: then its bytes were
// written.
void Node::note_unchanged(BlockEntry& entry) noexcept {
    if (!std::exchange(entry.merging.given_up, false)) entry.writes.guess = 0;
}

void Node::merge_work(Others others) noexcept {
    const std::span work = release_.work();
    if (!joins()) {
        for (std::size_t i = 0; i < work.size(); ++i) {
            BlockEntry& entry = entries_[work[i]];
            const std::scoped_lock guard{entry.latch};
            if (!begin_merge(i)) continue;
            merge(work[i], others);
            entry.state = take(entry, BlockEvent::merged).next;
        }
    } else {
        for (std::size_t i = 0; i < work.size();) i = merge_together(i, others);
    }
    release_.note_work_done();
}

// With the latch. False: there is nothing to be merged, and the block is done.
bool Node::begin_merge(std::size_t at) noexcept {
    const BlockId block = release_.work()[at];
    BlockEntry& entry = entries_[block];
    entry.unmerged = false;
    if (release_.is_reported(at)) {
        if (entry.state == BlockState::readonly) note_write_after_read(entry);
        entry.state = take(entry, BlockEvent::written).next;
    }
    if (entry.state == BlockState::held) {
        merge_held(block);
        return false;
    }
    if (settled(entry.state)) return false;  // since it was reported
    if (has_changed_unless_watched(block)) {
        entry.merging.given_up = false;
        return true;
    }
    note_unchanged(entry);
    entry.state = take(entry, BlockEvent::merged).next;
    return false;
}

// Puts off the blocks that a look behind a long release has found: the next release begins with
// them.
void Node::put_off_work() noexcept {
    for (const BlockId block : release_.work()) {
        const std::scoped_lock guard{entries_[block].latch};
        put_on_unmerged(block);
    }
}

void Node::note_made(BlockId block, Timestamp wts, Timestamp rts) noexcept {
    if (release_.note_made({wts, rts, block, self_})) count(&PlaceCounters::notices_made);
}

void Node::written(AddressRange range) noexcept {
    space_.for_blocks(reinterpret_cast<const void*>(range.address), range.bytes,
                      [&](BlockId block) {
                          // Read without the latch to sort out pages that are not mapped: a state
                          // that changes now was settled by a fault or an acquire after tracking
                          // was re-armed, which reports anew.
                          const BlockState state = entries_[block].state;
                          if (settled(state) || state == BlockState::invalidating) return;
                          release_.add_written(block);
                      });
}

// Where a thread flushes, its program's stack has frames of ours: each flush would find them
// changed, and tell all nodes.
bool Node::has_changed(BlockId block) noexcept {
    if (entries_[block].no_twin) return false;
    const std::byte* const ours = private_copy(block);
    const std::byte* const twin = twin_of(block);
    const ThreadPart& thread = thread_part();
    if (thread.frames_end == 0) return differs(ours, twin, block_bytes());
    const std::uintptr_t at = program_range(block).address;
    const std::size_t begin = std::clamp(thread.frames_begin, at, at + block_bytes()) - at;
    const std::size_t end = std::clamp(thread.frames_end, at, at + block_bytes()) - at;
    if (begin == end) return differs(ours, twin, block_bytes());
    return std::memcmp(ours, twin, begin) != 0 ||
           std::memcmp(ours + end, twin + end, block_bytes() - end) != 0;
}

// A page that the engine leaves open is compared at each release: about as often as costs what the
// fault of its next write will, and then it is watched. Looked at once more behind that: what comes
// later is reported. So is a buffer that no system call uses any more; the next call pins it anew.
// A stack is not watched, since the kernel writes there without a fault: what no other node reads
// of it is merged once in a while, as if it were changed, and becomes exclusive. With the block's
// latch.
bool Node::has_changed_unless_watched(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (has_changed(block)) {
        entry.merging.vain = 0;
        entry.merging.watched = false;
        return true;
    }
    if (counts_as_changed(entry.merging)) return true;
    engine_->unchanged(program_range(block));
    if (++entry.merging.vain < options_.vain_max) return false;
    entry.merging.vain = 0;
    if (is_pinned(offset_of(block))) return is_unread(block);
    if (!readable(entry.state) || must_stay(block)) return false;
    if (entry.state == BlockState::pinned) entry.state = take(entry, BlockEvent::unpinned).next;
    entry.merging.watched = true;
    engine_->watch(program_range(block));
    return has_changed(block);
}

// A block that is written again and again and is as it was before (zeros of a grid, marks that are
// set already) costs the fault of a write and a comparison each time. Merged now and then as if it
// were changed it becomes exclusive, if no other node uses it; else that is done ever less often.
bool Node::counts_as_changed(Merging& merging) const noexcept {
    constexpr std::uint8_t patience_max = 12;
    if (!options_.exclusive || !merging.watched) return false;
    if (++merging.rewritten < 1u << merging.patience) return false;
    merging.rewritten = 0;
    if (merging.patience < patience_max) ++merging.patience;
    return true;
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
    record_merge(program_range(block).address, live, copies_.own(block), block_bytes());
    races_.look_before_merge(block, live, copies_.own(block));
    publish_merged(block, token, [&](Version next) {
        races_.note_in_log(block, [&](std::uint64_t* noted) {
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
    const auto take_snapshot = [&] { std::memcpy(snapshot.get(), live, block_bytes()); };
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
    std::optional<PublicCopies::Met> met;
    if (!meets_others) {
        if (!entries_[block].held_back) return publish_live(block, token);
        merge_block(ours, twin, copies_.own(block), result.get(), block_bytes());
        races_.note_own_changes(block, ours, twin);
        hold_back(block, ours);
    } else {
        const auto came = reading.read_from(token.home);
        const auto [read, bytes] =
            came && came->wts == token.wts
                ? PublicCopies::Read{*came, block_bytes()}
                : copies_.read(token.home, block, theirs, PublicCopies::Room::empty);
        count(&PlaceCounters::bytes_fetched, bytes);
        record_merge(program_range(block).address, ours, twin, block_bytes());
        const MergeOutcome outcome = merge_block(ours, twin, theirs, result.get(), block_bytes());
        met = {read.wts, outcome.changed_lines};
        races_.look_at_merge(block, outcome, {ours, twin, theirs}, token.home);
        races_.note_own_changes(block, ours, twin);
        // Also where no byte is foreign: a word that atomics have set and set back tells what came
        // before them as well.
        const bool holds = must_hold_back(block, read.stamp);
        if (holds) {
            hold_back(block, ours);
        } else if (outcome.foreign) {
            store_foreign(live, ours, twin, theirs, block_bytes());
        }
    }
    publish_merged(block, token,
                   [&](Version next) { copies_.publish(block, result.get(), next, met); });
}

// What other nodes made of the home's copy is now in the public one: a node that reads that must
// acquire their releases. This node cannot wait for those here: the others' releases may wait
// likewise.
bool Node::must_hold_back(BlockId block, Stamp stamp) noexcept {
    // In one order with what acquire_round() does: it sees this, or is seen below.
    release_.needed().note_any();
    if (stamp.is_none()) return entries_[block].held_back;
    if (stamp.writer() == self_) {
        return entries_[block].held_back || news_.needs_open();
    }
    release_.needed().note(stamp);
    return entries_[block].held_back || !acquire_.acquired().is_inaccessible(stamp);
}

// A later release than this one, if an atomic of another thread owes that.
Stamp Node::stamp_of_merge(BlockId block) noexcept {
    const Stamp own = copies_.own_stamp(block);
    const Stamp mine{self_, release_.number()};
    const bool later = !own.is_none() && own.writer() == self_ && own.release() > mine.release();
    return later ? own : mine;
}

/// With the block's lock, which it opens: publish(version) makes the public copy what was merged.
template <class Publish>
void Node::publish_merged(BlockId block, const LockToken& token, Publish&& publish) noexcept {
    if (token.home != self_) count(&PlaceCounters::home_migrations);
    const Timestamp wts = release_.time_of_merge(write_time(token.rts, min_wts()));
    HIROBA_INVARIANT(wts > token.rts && wts > token.wts,
                     "block %u: written at %lu, read until %lu (invariant 3)", block, wts.value,
                     token.rts.value);
    const Timestamp rts = wts.after(options_.lease);
    note_streak(block, token);
    publish(Version{wts, stamp_of_merge(block), races_.this_change()});
    BlockEntry& entry = entries_[block];
    const Tried tried = try_version(entry, token, wts);
    if (tried == Tried::first) entry.trial.by = release_.number();
    entries_[block].notice_wts = {};
    // No lease in the queue: if another node takes the lock now it marks the block, and the acquire
    // that has to know of its write waits for this latch.
    entries_[block].rts = rts;
    entries_[block].brought = false;
    lock_.unlock(block, {self_, wts, rts});
    note_made(block, wts, tried == Tried::no ? rts : Timestamp{});
    count(&PlaceCounters::blocks_merged);
    trace("dsm.merge", block, wts.value);
}

// A release's merge, with the latch. What came before an atomic that was made since this release
// began it may have passed by: the next one is owed.
void Node::merge_held(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    entry.merging.vain = 0;
    entry.merging.given_up = false;
    if (entry.atomics.release >= release_.number()) {
        end_hold(block);
    } else {
        share_again(block);
        note_row(entry.atomics);
        publish_merged(block, lock_.held_token(block), [&](Version next) {
            copies_.publish_changes(block, private_copy(block), next, nullptr);
        });
    }
    entry.state = take(entry, BlockEvent::merged).next;
}

void Node::add_own_notice(BlockId block, Timestamp wts, Timestamp rts) noexcept {
    news_.add_own({wts, rts, block, self_});
    count(&PlaceCounters::notices_made);
}

}  // namespace hiroba::dsm
