// SPDX-License-Identifier: BSD-3-Clause
// Role: how threads of one node wait for each other: gates, and the barrier made of one.
// Invariant: a gate only ever advances; a thread that read its value before the event it waits for
// cannot miss it. Waiting spins, then yields, then sleeps: in a futex on one node, in the
// endpoint (which handles messages meanwhile) on several.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bell.hpp"
#include "base/bytes.hpp"

namespace hiroba::net {
class Endpoint;
}

namespace hiroba::omp {

/// How patient this process is: looks before the first yield, yields before sleep.
struct Patience {
    net::Endpoint* endpoint = nullptr;  ///< null: futex
    std::uint32_t spins = 0, yields = 0;
};

/// Thread: any, at once.
class alignas(cache_line_bytes) Gate {
public:
    std::uint32_t value() const noexcept { return bell_.rings(); }
    /// Lets all threads go that wait to pass the present value.
    void advance(const Patience& patience) noexcept;
    /// Returns once the value differs from `seen`.
    void pass(std::uint32_t seen, const Patience& patience) noexcept;

private:
    Bell bell_;
};

/// Counts arrivals of a team's threads on this node; the last one opens the gate.
class LocalBarrier {
public:
    /// Between regions: `members` threads will arrive each time. Forgets those that have arrived at
    /// a barrier of a cancelled region.
    void set_members(std::uint32_t members) noexcept {
        members_ = members;
        arrived_.store(0, std::memory_order_relaxed);
    }

    /// Read before arriving; to be passed to wait().
    std::uint32_t phase() const noexcept { return gate_.value(); }
    /// True for the last: it alone may go on, and calls open() when the others may too.
    bool arrive() noexcept {
        // Before it has arrived: behind that the region may end, and the next one has its own.
        const std::uint32_t members = members_;
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 != members) return false;
        arrived_.store(0, std::memory_order_relaxed);  // Published by open().
        return true;
    }
    void open(const Patience& patience) noexcept { gate_.advance(patience); }
    void wait(std::uint32_t phase, const Patience& patience) noexcept {
        gate_.pass(phase, patience);
    }

private:
    alignas(cache_line_bytes) std::atomic<std::uint32_t> arrived_{0};
    std::uint32_t members_ = 1;
    Gate gate_;
};

}  // namespace hiroba::omp
