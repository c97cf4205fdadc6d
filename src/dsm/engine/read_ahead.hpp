// SPDX-License-Identifier: BSD-3-Clause
// Role: how many blocks to bring along with a miss: none at first, twice as many each time a miss
// falls right behind what was brought before (design page dsm.md section 4 item 8).
// Invariant: only a guess; threads of a node share it and may spoil each other's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

class ReadAhead {
public:
    static constexpr std::uint32_t blocks_max = 32;

    /// The window for a miss on `block`.
    std::uint32_t missed(BlockId block) noexcept {
        const std::uint64_t guess = guess_.load(std::memory_order_relaxed);  // a guess: no partner
        const auto window = static_cast<std::uint32_t>(guess & 0xff);
        const bool hit = static_cast<BlockId>(guess >> 8) == block;
        return hit ? std::clamp(2 * window, 1u, blocks_max) : 0;
    }
    /// What was brought behind `block`; the next miss in a row is expected after it.
    void brought(BlockId block, std::uint32_t count) noexcept {
        guess_.store(std::uint64_t{block + 1 + count} << 8 | count, std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t> guess_{0};  ///< expected block, and the last window in 8 bits
};

}  // namespace hiroba::dsm
