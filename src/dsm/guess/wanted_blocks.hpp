// SPDX-License-Identifier: BSD-3-Clause
// Role: which blocks of this node's own other nodes will want: behind which synchronization they
// wanted some before, and what lies near one that they want now: part by part, so that who waits
// for the first of a long run does not wait for the last. Invariant: only guesses; nothing but time
// depends on them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/latch.hpp"
#include "dsm/guess/use_predictor.hpp"
#include "dsm/guess/wanted_runs.hpp"

namespace hiroba::dsm {

/// Thread: any; runs with the latch.
class WantedBlocks {
public:
    struct Given {
        std::uint32_t looked_at;
        std::uint32_t given_up;
    };
    static constexpr std::uint32_t row_max = 64;  ///< what is given up together
    static constexpr std::uint32_t part_first = 64, part_growth = 4;

    UsePredictor& expected() noexcept { return expected_; }
    /// As expected().arrive().
    std::span<UsePredictor::Run> arrive(SyncPlace place) noexcept {
        const auto runs = expected_.arrive(place);
        place_.store(expected_.here(), std::memory_order_relaxed);  // a guess, as all here
        return runs;
    }
    /// Where the threads of this node synchronized last.
    std::uint8_t place() const noexcept { return place_.load(std::memory_order_relaxed); }
    bool try_lock() noexcept { return latch_.try_lock(); }
    void unlock() noexcept { latch_.unlock(); }
    /// Another node wants the block, of `block_count`. With the latch, as the next two.
    std::size_t begin_run(BlockId block, std::size_t block_count) noexcept {
        const WantedRuns::Guess guess = runs_.wanted(block);
        const std::size_t reach = std::size_t{8} * guess.window;
        const std::size_t end = std::min(block_count, block + std::size_t{1} + reach);
        rests_[guess.place] = {guess,
                               block,
                               block + 1,
                               static_cast<BlockId>(block - std::min<std::size_t>(block, reach)),
                               static_cast<BlockId>(end),
                               guess.window,
                               part_first};
        return guess.place;
    }
    /// Gives up the next part of the run by give(first, count, most), which looks at `count` blocks
    /// from `first` on until `most` of them were given up: {looked at, given up}. Returns how many
    /// were given up.
    template <class Give>
    std::uint32_t give_part(std::size_t place, Give&& give) noexcept {
        Rest& rest = rests_[place];
        std::uint32_t part = std::min(rest.left, rest.part), given_up = 0;
        rest.left -= part;
        rest.part *= part_growth;
        while (part > 0 && rest.has_room()) {
            const std::uint32_t count = rest.guess.down
                                            ? std::min({part, row_max, rest.low - rest.begin})
                                            : rest.end - rest.high;
            const auto [looked_at, given] =
                give(rest.guess.down ? rest.low - count : rest.high, count, part);
            (rest.guess.down ? rest.low -= looked_at : rest.high += looked_at);
            given_up += given;
            part -= given;
        }
        runs_.given_up(rest.guess, rest.low, rest.high);
        if (!rest.has_room()) rest.left = 0;
        const auto is_left = [](const Rest& each) { return each.left > 0; };
        any_left_.store(std::any_of(rests_.begin(), rests_.end(), is_left),
                        std::memory_order_relaxed);
        return given_up;
    }
    /// As give_part(), of each run of which some is left.
    template <class Give>
    std::uint32_t give_rests(Give&& give) noexcept {
        std::uint32_t given_up = 0;
        for (std::size_t place = 0; place < rests_.size(); ++place)
            if (rests_[place].left > 0) given_up += give_part(place, give);
        return given_up;
    }
    /// Relaxed: whoever adds to it wakes the thread that looks.
    bool is_any_left() const noexcept { return any_left_.load(std::memory_order_relaxed); }

private:
    friend class NodeView;

    /// A run that is being given up, from low downwards or from high upwards.
    struct Rest {
        WantedRuns::Guess guess{};
        BlockId low = 0, high = 0;
        BlockId begin = 0, end = 0;  ///< how far it may reach
        std::uint32_t left = 0;      ///< blocks to be given up behind this part
        std::uint32_t part = 0;
        bool has_room() const noexcept { return guess.down ? low > begin : high < end; }
    };

    UsePredictor expected_;
    std::atomic<std::uint8_t> place_{UINT8_MAX};
    Latch latch_;
    WantedRuns runs_;
    std::array<Rest, WantedRuns::runs_max> rests_{};
    std::atomic<bool> any_left_{false};
};

}  // namespace hiroba::dsm
