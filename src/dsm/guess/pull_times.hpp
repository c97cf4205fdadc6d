// SPDX-License-Identifier: BSD-3-Clause
// Role: how long it takes here until another node's release has come, once it is asked for: some
// microseconds between cores, a hundred over a network, a thousand where page faults are emulated
// or processors shared. Waits for what another node is about to do last a few times as long.
// Invariant: a hint. It decides how long a wait lasts, never what is read behind it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class PullTimes {
public:
    /// A release that was not known here has come after `ns`, asked for or not.
    void note(std::uint64_t ns) noexcept {
        const std::uint64_t before = smoothed_ns_.load(std::memory_order_relaxed);
        // Relaxed: a sample that another thread overwrites is lost.
        smoothed_ns_.store(before - before / 8 + std::min(ns, one_ns_max) / 8,
                           std::memory_order_relaxed);
    }
    /// How long to wait for a node that has to release, and to be asked for it, first.
    /// @param at_least_ns  also where releases come sooner
    std::uint64_t longest_wait_ns(std::uint64_t at_least_ns) const noexcept {
        return std::max(at_least_ns, 4 * smoothed_ns_.load(std::memory_order_relaxed));
    }

private:
    static constexpr std::uint64_t one_ns_max = 1'250'000;  ///< of a node that lost its processor

    std::atomic<std::uint64_t> smoothed_ns_{0};
};

}  // namespace hiroba::dsm
