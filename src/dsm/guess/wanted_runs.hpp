// SPDX-License-Identifier: BSD-3-Clause
// Role: how many exclusive blocks to give up with one that another node wants: none at first, four
// times as many each time that the next one wanted lies on the same side of those, whatever the
// stride; half as many when it lies on the other or among them (a row that is read again and again
// takes little of what is near along). Rows are read downwards, too: libc moves memory that way.
// Several nodes' runs, and those through several arrays, may be under way at once. Invariant: only
// a guess; nothing but time depends on it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any, one at a time.
class WantedRuns {
public:
    static constexpr std::uint32_t window_max = 4096;
    static constexpr std::size_t runs_max = 16;

    struct Guess {
        std::uint32_t window;  ///< how many blocks beside the wanted one
        bool down;             ///< below it, else above it
        std::size_t place;     ///< of the run, for given_up()
    };
    Guess wanted(BlockId block) noexcept {
        ++clock_;
        std::size_t oldest = 0, nearest = runs_max;
        BlockId distance = near;
        for (std::size_t place = 0; place < runs_max; ++place) {
            const Run& run = runs_[place];
            if (run.used < runs_[oldest].used) oldest = place;
            const BlockId to = distance_of(run, block);
            if (run.used == 0 || to >= distance) continue;
            nearest = place;
            distance = to;
        }
        if (nearest == runs_max) return {0, false, oldest};
        const Run& run = runs_[nearest];
        const bool below = block < run.begin, beyond = block >= run.end;
        const bool goes_on = run.down ? below : beyond;
        const bool down = below || (run.down && !beyond);
        return {goes_on ? std::min(4 * run.window + 3, window_max) : run.window / 2, down, nearest};
    }
    /// @param begin, end  of the blocks that were given up, the wanted one included
    void given_up(const Guess& guess, BlockId begin, BlockId end) noexcept {
        runs_[guess.place] = {clock_, begin, end, guess.window, guess.down};
    }

private:
    static constexpr BlockId near = 8192;
    struct Run {
        std::uint32_t used = 0;  ///< by clock_; 0: never
        BlockId begin = 0;
        BlockId end = 0;
        std::uint32_t window = 0;
        bool down = false;
    };
    static BlockId distance_of(const Run& run, BlockId block) noexcept {
        if (block < run.begin) return run.begin - block;
        return block < run.end ? 0 : block - run.end;
    }
    std::array<Run, runs_max> runs_{};
    std::uint32_t clock_ = 0;
};

}  // namespace hiroba::dsm
