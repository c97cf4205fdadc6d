// SPDX-License-Identifier: BSD-3-Clause
// Role: what the threads use next is brought while they stand still: blocks that were missed behind
// the same synchronization the last times, in bulk, mapped run by run.
// Invariant: as with all that is fetched ahead, latches are only tried, and what must be acquired
// first stays away (docs/decisions/blocks-brought-ahead.md).
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

void Node::bring_expected() noexcept {
    if (!options_.follow) return;
    const SyncPlace place = this_thread().place;
    on_runtime_stack([&] {
        const Timed timed{statistics_, &PlaceCounters::acquire_ns};
        const RecordedWork recorded{RecordKind::acquire};
        guess_.predictor.learn();
        guess_.predictor.filter([&](UsePredictor::Run& run) { return is_still_used(run); });
        for (UsePredictor::Run& run : guess_.predictor.arrive(place)) bring_run(run);
    });
}

// A sample is readable and not mapped, so that its first use is a fault, which is noted.
bool Node::is_still_used(UsePredictor::Run& run) noexcept {
    constexpr std::uint8_t idle_max = 8;
    if (run.sample == 0) return run.idle < idle_max;
    const BlockId block = run.first + run.sample - 1;
    run.sample = 0;
    const std::scoped_lock guard{entries_[block].latch};
    if (std::exchange(entries_[block].watched, false)) {
        count(&PlaceCounters::expected_unused, run.count);
        return false;
    }
    if (run.trust < UINT8_MAX) ++run.trust;
    return true;
}

// Those of the run that may come, with their latches. Returns how many.
std::size_t Node::latch_expected(const UsePredictor::Run& run,
                                 std::span<BlockId> latched) noexcept {
    std::size_t found = 0;
    for (BlockId block = run.first; block < run.end(); ++block) {
        BlockEntry& entry = entries_[block];
        // Relaxed: a hint, looked at again with the latch.
        if (std::atomic_ref{entry.state}.load(std::memory_order_relaxed) != BlockState::invalid)
            continue;
        if (program_range(block).address == 0 || !entry.latch.try_lock()) continue;
        if (may_come_unasked(entry.state) && !entry.guards_stack && !must_stay(block)) {
            latched[found++] = block;
            continue;
        }
        entry.latch.unlock();
    }
    return found;
}

void Node::bring_run(UsePredictor::Run& run) noexcept {
    std::uint32_t brought = 0;
    const std::uint8_t sample = UsePredictor::next_sample(run);
    std::array<BlockId, UsePredictor::run_max> latched;
    AddressRange part;
    Access access = Access::read;
    const auto map_part = [&] {
        if (part.bytes > 0) engine_->map(part, access);
        part = {};
    };
    static_assert(together_max >= UsePredictor::run_max);
    const std::size_t wanted_count = latch_expected(run, latched);
    const std::uint32_t came =
        fetch_ahead_together(std::span{latched}.first(wanted_count), true, true);
    for (std::size_t i = 0; i < wanted_count; ++i) {
        const BlockId block = latched[i];
        BlockEntry& entry = entries_[block];
        if ((came >> i & 1) == 0) {
            entry.latch.unlock();
            continue;
        }
        const AddressRange range = program_range(block);
        latched[brought++] = block;
        // Next time without taking it away in between.
        const auto age = static_cast<std::uint16_t>(acquire_.rounds() - entry.follow.stale_in);
        if (age <= 1) note_followed(entry);
        entry.watched = block + 1 == run.first + sample && !readable(entry.state);
        const bool writes = entry.writes.guess >= write_guess_sure && !entry.watched;
        const Access wanted = writes ? Access::write : Access::read;
        entry.state = take(entry, writes ? BlockEvent::write_fault : BlockEvent::read_fault).next;
        if (entry.watched) {
            run.sample = sample;
            continue;
        }
        if (wanted != access || part.end() != range.address) map_part();
        access = wanted;
        if (part.bytes == 0) part.address = range.address;
        part.bytes += range.bytes;
    }
    map_part();
    for (std::uint32_t i = 0; i < brought; ++i) entries_[latched[i]].latch.unlock();
    count(&PlaceCounters::expected, brought);
    run.idle = brought > 0 ? 0 : static_cast<std::uint8_t>(run.idle + 1);
}

}  // namespace hiroba::dsm
