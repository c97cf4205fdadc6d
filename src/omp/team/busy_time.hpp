// SPDX-License-Identifier: BSD-3-Clause
// Role: estimates from what the leader of a spread team has waited how long its region would have
// taken at least on the leader's node. A hint: it says when to try, and the clock decides.
// Invariant: no clock is read here.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hiroba::omp {

/// What node 0's memory has counted up to some moment.
struct MemoryEvents {
    std::uint64_t faults = 0;
    std::uint64_t first_touches = 0;  ///< of these, such as bring nothing
    std::uint64_t atomics = 0;
    std::uint64_t waited_ns = 0;  ///< in faults and atomics, as far as that was measured
    MemoryEvents operator-(const MemoryEvents& before) const noexcept {
        return {faults - before.faults, first_touches - before.first_touches,
                atomics - before.atomics, waited_ns - before.waited_ns};
    }
    std::uint64_t misses() const noexcept { return faults - std::min(faults, first_touches); }
};

/// Thread: the leader of the spread team.
class BusyTime {
public:
    /// @param processors  of node 0
    /// @param mapped      all nodes are of one host
    BusyTime(std::uint32_t processors, bool mapped) noexcept
        : processors_(std::max(processors, 1u)), miss_ns_(mapped ? 6'000 : 30'000) {}

    /// A region of `size` threads, `members` of them here, has taken `took_ns`. For `waited_ns` of
    /// these its leader stood at barriers, at the fork and the join.
    void note_region(std::uint32_t size, std::uint32_t members, std::uint64_t took_ns,
                     std::uint64_t waited_ns, MemoryEvents events) noexcept {
        const std::uint64_t busy_ns =
            rest(took_ns, waited_ns + cost_ns(events) / std::max(members, 1u));
        const double crowd = crowd_of(size) / crowd_of(members);
        region_ns_ = static_cast<std::uint64_t>(static_cast<double>(busy_ns) * crowd);
        is_known_ = true;
    }
    /// The region stayed: there is nothing to estimate.
    void forget() noexcept { is_known_ = false; }
    /// A serial part has followed. @return of both together; 0: unknown
    std::uint64_t least_ns(std::uint64_t serial_ns, MemoryEvents events) const noexcept {
        if (!is_known_) return 0;
        return std::max<std::uint64_t>(region_ns_ + rest(serial_ns, cost_ns(events)), 1);
    }

private:
    static constexpr std::uint64_t atomic_ns = 300;
    static std::uint64_t rest(std::uint64_t took_ns, std::uint64_t waited_ns) noexcept {
        return took_ns - std::min(took_ns, waited_ns);
    }
    std::uint64_t cost_ns(MemoryEvents events) const noexcept {
        return std::max(events.misses() * miss_ns_ + events.atomics * atomic_ns, events.waited_ns);
    }
    double crowd_of(std::uint32_t threads) const noexcept {
        return std::max(1., static_cast<double>(threads) / processors_);
    }

    std::uint32_t processors_;
    std::uint64_t miss_ns_;
    std::uint64_t region_ns_ = 0;  ///< of the last region, where it stayed
    bool is_known_ = false;
};

}  // namespace hiroba::omp
