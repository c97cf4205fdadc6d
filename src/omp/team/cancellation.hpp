// SPDX-License-Identifier: BSD-3-Clause
// Role: what has been cancelled in a team, as one node knows it (OpenMP 5.2, section 11.2).
// Invariant: what was cancelled is kept by the number of the region, and the phase in it, never as
// a bare flag: one that comes late, or early, from another node cancels nothing else. Numbers only
// rise. A phase is the part of a region between two barriers: all threads count the same.
#pragma once

#include <atomic>
#include <cstdint>

namespace hiroba::omp {

/// The construct that a `cancel` or `cancellation point` names.
enum class Cancel : std::uint8_t { parallel, loop, sections, taskgroup };

/// Thread: any, but for begin().
class Cancellation {
public:
    /// Region `number` starts, above all former ones; while no thread of this node is in it.
    void begin(std::uint64_t number) noexcept { number_.store(number, std::memory_order_relaxed); }
    std::uint64_t number() const noexcept { return number_.load(std::memory_order_relaxed); }

    void cancel_region(std::uint64_t number) noexcept { raise(region_, number + 1); }
    /// Whether the present region is cancelled.
    bool region() const noexcept {
        return region_.load(std::memory_order_acquire) == number() + 1;  // pairs with raise()
    }

    void cancel_work(std::uint64_t number, std::uint64_t phase) noexcept {
        raise(work_, key(number, phase));
    }
    /// Whether the worksharing construct of this phase of the present region is cancelled.
    bool work(std::uint64_t phase) const noexcept {
        return work_.load(std::memory_order_acquire) == key(number(), phase);  // as above
    }

private:
    static std::uint64_t key(std::uint64_t number, std::uint64_t phase) noexcept {
        return number << 32 | ((phase + 1) & 0xffffffff);
    }
    static void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) noexcept {
        std::uint64_t seen = to.load(std::memory_order_relaxed);
        while (seen < value && !to.compare_exchange_weak(seen, value)) {
        }
    }

    std::atomic<std::uint64_t> number_{0}, region_{0}, work_{0};
};

}  // namespace hiroba::omp
