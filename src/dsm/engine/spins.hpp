// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node knows of threads that wait for others' writes by plain loads (node_spins.cpp).
// Invariant: hints, all of them: they decide when something is looked at, never what is read. So
// relaxed, and no latch.
#pragma once

#include <atomic>
#include <cstdint>

#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Of one block.
struct SpinUse {
    std::atomic<std::uint8_t> waits{0};  ///< so much is expected of waiting in a load's fault
    std::atomic<bool> closed{false};     ///< made inaccessible for that, not loaded since
};

/// Of a node.
struct Spins {
    std::atomic<std::uint64_t> seen_at_ns{0};  ///< the last one, here or elsewhere; 0: none ever
    std::atomic<std::uint64_t> told_at_ns{0};  ///< when the others were last told of one here
    std::atomic<std::uint64_t> acquired_aside_ns{0};  ///< when the background flusher last acquired
    /// The block that loads waited for last, + 1, if it is accessible since; 0: none.
    std::atomic<std::uint32_t> open{0};

    static constexpr BlockId no_block = ~BlockId{0};
    /// Behind the fault of a load.
    void note_open(const SpinUse& use, BlockId block) noexcept {
        if (use.waits.load(std::memory_order_relaxed) == 0) return;
        open.store(block + 1, std::memory_order_relaxed);
    }
};

}  // namespace hiroba::dsm
