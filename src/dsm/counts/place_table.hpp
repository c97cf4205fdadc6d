// SPDX-License-Identifier: BSD-3-Clause
// Role: the counters of a node, and the same counters for each place that threads synchronize at.
// Invariant: a place's slot is claimed once, by CAS of its key, and never freed; what finds no free
// slot is counted at the last one, which has no address.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dsm/dsm.hpp"

namespace hiroba::dsm {

using PlaceCounter = std::atomic<std::uint64_t>;

/// The counters behind MissCounts and MemoryCounts, which have the names.
struct MissCounters {
    PlaceCounter read_faults{0}, write_faults{0}, fetches_by_notice{0}, fetches_by_home{0},
        renewals{0}, bytes_fetched{0}, fetched_ahead{0}, ahead_watched{0}, ahead_used{0},
        followed{0}, carried{0}, expected{0}, expected_unused{0};
};
struct PlaceCounters : MissCounters {
    using Member = PlaceCounter PlaceCounters::*;
    PlaceCounter releases{0}, acquires{0}, blocks_merged{0}, notices_made{0}, notices_dropped{0},
        invalidations{0}, lease_expiries{0}, home_migrations{0}, atomics{0}, flushes{0}, races{0},
        pulls{0}, made_exclusive{0}, given_up{0}, given_up_ahead{0}, taken_first{0}, taken_whole{0},
        held{0}, fault_ns{0}, release_ns{0}, acquire_ns{0};
};

inline void add_to(PlaceCounter& counter, std::uint64_t by) noexcept {
    counter.fetch_add(by, std::memory_order_relaxed);  // statistics: no partner
}

MemoryCounts sum_of(const PlaceCounters& counters) noexcept;

/// Thread: any; async-signal-safe.
class PlaceTable {
public:
    static constexpr std::size_t places_max = 512;

    PlaceCounters& at(const SyncPlace& place) noexcept;
    void each(SharedMemory::PlaceVisit visit, void* context) const noexcept;

private:
    struct Slot {
        std::atomic<std::uint64_t> key{0};  ///< 0: free
        PlaceCounters counters;
    };
    std::array<Slot, places_max> slots_;
    PlaceCounters others_;
};

}  // namespace hiroba::dsm
