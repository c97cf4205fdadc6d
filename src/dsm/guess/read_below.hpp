// SPDX-License-Identifier: BSD-3-Clause
// Role: how many blocks to bring along with a miss below it, where misses come one below the other:
// loops that count down, and libc, which moves memory downwards where source and target would be in
// each other's way (docs/layers/dsm.md, misses in a row).
// Invariant: only a guess; threads of a node share it and may spoil each other's.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class ReadBelow {
public:
    static constexpr std::uint32_t blocks_max = 64;

    /// How many to bring: twice as many each time a miss falls right below what was brought before.
    std::uint32_t missed(BlockId block) noexcept {
        for (auto& place : runs_) {
            const std::uint64_t run = place.load(std::memory_order_relaxed);  // a guess
            if (run == 0 || next_of(run) != block) continue;
            place.store(0, std::memory_order_relaxed);
            return std::min(std::clamp(2 * count_of(run), 1u, blocks_max), block);
        }
        return 0;
    }
    bool goes_on_at(BlockId block) const noexcept {
        for (const auto& place : runs_) {
            const std::uint64_t run = place.load(std::memory_order_relaxed);
            if (run != 0 && next_of(run) == block) return true;
        }
        return false;
    }
    /// Notes what was brought below `block`: the next miss of the run is expected below that.
    void brought(BlockId block, std::uint32_t count) noexcept {
        if (block <= count) return;  // nothing is left below
        const std::uint64_t run = std::uint64_t{count} << 32 | (block - count - 1);
        const std::size_t place = newest_.fetch_add(1, std::memory_order_relaxed) % runs_max;
        runs_[place].store(run, std::memory_order_relaxed);
    }

private:
    static constexpr std::size_t runs_max = 16;
    static BlockId next_of(std::uint64_t run) noexcept { return static_cast<BlockId>(run); }
    static std::uint32_t count_of(std::uint64_t run) noexcept {
        return static_cast<std::uint32_t>(run >> 32);
    }

    std::array<std::atomic<std::uint64_t>, runs_max> runs_{};  ///< 0: none
    std::atomic<std::uint32_t> newest_{0};
};

}  // namespace hiroba::dsm
