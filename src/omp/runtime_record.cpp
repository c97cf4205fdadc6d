// SPDX-License-Identifier: BSD-3-Clause
// Role: what recordings (base/record.hpp) have of regions and barriers.
// Invariant: all nodes give a region, and a barrier in it, the same numbers.
#include "base/record.hpp"
#include "dsm/dsm.hpp"
#include "omp/runtime_core.hpp"

namespace hiroba::omp {

std::uint64_t RuntimeCore::region_number() const noexcept {
    return link_ != nullptr ? link_->region() : regions_.load(std::memory_order_relaxed);
}

void RuntimeCore::record_entry(const Frame& frame, bool spread) const noexcept {
    if (!is_recording()) [[likely]]
        return;
    const std::uint64_t region = spread ? region_number() : 0;
    if (spread) record_phase(region);
    record(RecordKind::region, region,
           frame.place.thread | std::uint64_t{frame.place.team_size} << 32, thread_cpu_ns());
}

/// A barrier as records name it.
std::uint64_t RuntimeCore::meeting_of(const Frame& frame) noexcept {
    return (frame.phase & ~std::uint32_t{0}) | std::uint64_t{frame.place.thread} << 32;
}

void RuntimeCore::record_arrival(const ThreadState& thread) const noexcept {
    if (!is_recording()) [[likely]]
        return;
    record_atomics(thread);
    record(RecordKind::barrier_at, region_number(), meeting_of(*thread.frame), thread_cpu_ns());
}

void RuntimeCore::record_end(const ThreadState& thread) const noexcept {
    if (!is_recording()) [[likely]]
        return;
    record_atomics(thread);
    record(RecordKind::ends, region_number(), 0, thread_cpu_ns());
}

/// How many locks this node has taken, with the one that is about to be; 0 where nothing is
/// recorded.
std::uint64_t RuntimeCore::count_lock() noexcept {
    return is_recording() ? locks_recorded_.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
}

void RuntimeCore::record_atomics(const ThreadState& thread) const noexcept {
    if (thread.local_thread == 0 && parts_.memory != nullptr)
        record(RecordKind::atomics, parts_.memory->counts().atomics);
}

}  // namespace hiroba::omp
