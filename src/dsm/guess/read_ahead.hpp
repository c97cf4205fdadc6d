// SPDX-License-Identifier: BSD-3-Clause
// Role: how many blocks to bring along with a miss: none at first, twice as many each time a miss
// falls right behind what was brought before (docs/layers/dsm.md, misses in a row); and at once as
// many as last time, where such a run of misses has begun before.
// Invariant: only a guess; threads of a node share it and may spoil each other's. Many runs may be
// under way at once: a loop over the planes of several arrays has one in each plane.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "dsm/guess/read_below.hpp"
#include "dsm/guess/spread_misses.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class ReadAhead {
public:
    static constexpr std::uint32_t blocks_max = 64;

    struct Guess {
        std::uint32_t window;  ///< how many blocks behind the missed one
        BlockId head;          ///< where the run has begun
        bool spread = false;   ///< a lone miss, whose part is to come
    };
    /// @param last_time  how long the run was that began at `block` the last time; 0: none did
    Guess missed(BlockId block, std::uint32_t last_time) noexcept {
        for (auto& place : set_of(block)) {
            const Run run = Run::decode(place.load(std::memory_order_relaxed));  // a guess
            if (run.next != block || run.length == 0) continue;
            place.store(0, std::memory_order_relaxed);
            if (run.length == 1) spread_.in_a_row(block - 1);
            return {std::clamp(2 * run.window, 1u, blocks_max), block - run.length};
        }
        return {std::min(last_time, blocks_max), block, last_time == 0 && spread_.missed(block)};
    }
    /// Whether a miss of `block` goes on with a run of misses, upwards or downwards.
    bool goes_on_at(BlockId block) noexcept {
        for (const auto& place : set_of(block)) {
            const Run run = Run::decode(place.load(std::memory_order_relaxed));
            if (run.next == block && run.length > 0) return true;
        }
        return below_.goes_on_at(block);
    }
    /// Notes what was brought behind `block`: the next miss of the run is expected after it.
    /// Returns how long the run is by now.
    std::uint32_t brought(const Guess& guess, BlockId block, std::uint32_t count) noexcept {
        const BlockId next = block + 1 + count;
        const std::uint32_t length = std::min(next - guess.head, length_max);
        // The newest first: a full set loses its oldest.
        std::uint64_t moved = Run{next, count, length}.encode();
        for (auto& place : set_of(next)) {
            const std::uint64_t former = place.load(std::memory_order_relaxed);
            place.store(moved, std::memory_order_relaxed);
            if ((moved = former) == 0) break;
        }
        return length;
    }
    /// Calls visit(run) for each run under way. No other thread runs: most sets are empty, and are
    /// passed by as a line.
    template <class Visit>
    void each_run(Visit&& visit) const noexcept {
        for (const Set& set : sets_) {
            std::array<std::uint64_t, std::tuple_size_v<Set>> runs;
            std::memcpy(runs.data(), &set, sizeof runs);
            std::uint64_t any = 0;
            for (const std::uint64_t run : runs) any |= run;
            if (any == 0) continue;
            for (const std::uint64_t run : runs)
                if (run != 0) visit(run);
        }
    }

    SpreadMisses& spread() noexcept { return spread_; }
    ReadBelow& below() noexcept { return below_; }

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
    static constexpr unsigned set_bits = 7;
    using Set = std::array<std::atomic<std::uint64_t>, 8>;
    /// Where a run is whose next miss is expected at `block`.
    Set& set_of(BlockId block) noexcept {
        // Planes are often a power of two apart.
        const std::uint32_t mixed = (block ^ block >> 7 ^ block >> 14) * 0x9E37'79B1u;
        return sets_[mixed >> (32 - set_bits)];
    }

    alignas(64) std::array<Set, 1 << set_bits> sets_{};
    SpreadMisses spread_;
    ReadBelow below_;
};

}  // namespace hiroba::dsm
