// SPDX-License-Identifier: BSD-3-Clause
// Role: how many blocks to bring along with a miss: none at first, twice as many each time a miss
// falls right behind what was brought before (docs/layers/dsm.md, misses in a row); and at once as
// many as last time, where such a run of misses has begun before.
// Invariant: only a guess; threads of a node share it and may spoil each other's. Several runs may
// be under way at once, as in a[i] = b[i] + c[i].
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class ReadAhead {
public:
    static constexpr std::uint32_t blocks_max = 64;
    static constexpr std::size_t runs = 8;

    struct Guess {
        std::uint32_t window;  ///< how many blocks behind the missed one
        BlockId head;          ///< where the run has begun
        std::size_t place;     ///< of the run, for brought()
    };
    /// @param last_time  how long the run was that began at `block` the last time; 0: none did
    Guess missed(BlockId block, std::uint32_t last_time) noexcept {
        for (std::size_t place = 0; place < runs; ++place) {
            const Run run = Run::decode(runs_[place].load(std::memory_order_relaxed));  // a guess
            if (run.next != block || run.length == 0) continue;
            return {std::clamp(2 * run.window, 1u, blocks_max), block - run.length, place};
        }
        const std::size_t place = oldest_.fetch_add(1, std::memory_order_relaxed) % runs;
        return {std::min(last_time, blocks_max), block, place};
    }
    /// Notes what was brought behind `block`: the next miss of the run is expected after it.
    /// Returns how long the run is by now.
    std::uint32_t brought(const Guess& guess, BlockId block, std::uint32_t count) noexcept {
        const BlockId next = block + 1 + count;
        const std::uint32_t length = std::min(next - guess.head, length_max);
        runs_[guess.place].store(Run{next, count, length}.encode(), std::memory_order_relaxed);
        return length;
    }

private:
    static constexpr std::uint32_t length_max = 0xffff;
    struct Run {
        BlockId next;
        std::uint32_t window;
        std::uint32_t length;  ///< 0: no run
        static Run decode(std::uint64_t raw) {
            return {static_cast<BlockId>(raw), static_cast<std::uint32_t>(raw >> 32 & 0xffff),
                    static_cast<std::uint32_t>(raw >> 48)};
        }
        std::uint64_t encode() const {
            return std::uint64_t{length} << 48 | std::uint64_t{window} << 32 | next;
        }
    };
    std::array<std::atomic<std::uint64_t>, runs> runs_{};
    std::atomic<std::size_t> oldest_{0};
};

}  // namespace hiroba::dsm
