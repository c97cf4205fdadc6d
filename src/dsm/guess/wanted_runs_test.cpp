// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/wanted_runs.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

/// Wants the block; what the guess names is given up.
WantedRuns::Guess want(WantedRuns& runs, BlockId block) {
    const WantedRuns::Guess guess = runs.wanted(block);
    if (guess.down) {
        runs.given_up(guess, block - guess.window, block + 1);
    } else {
        runs.given_up(guess, block, block + 1 + guess.window);
    }
    return guess;
}

TEST(WantedRuns, four_times_as_many_are_given_up_each_time_upwards) {
    WantedRuns runs;
    BlockId block = 100'000;
    for (const std::uint32_t wanted : {0u, 3u, 15u, 63u, 255u, 1023u, 4095u, 4096u, 4096u}) {
        const WantedRuns::Guess guess = want(runs, block);
        EXPECT_EQ(guess.window, wanted);
        EXPECT_FALSE(guess.down);
        block += guess.window + 1;
    }
}

// The first step downwards turns the run: it begins anew.
TEST(WantedRuns, likewise_downwards) {
    WantedRuns runs;
    BlockId block = 100'000;
    EXPECT_EQ(want(runs, block--).window, 0u);
    for (const std::uint32_t wanted : {0u, 3u, 15u, 63u, 255u, 1023u, 4095u, 4096u, 4096u}) {
        const WantedRuns::Guess guess = want(runs, block);
        EXPECT_EQ(guess.window, wanted);
        EXPECT_TRUE(guess.down);
        block -= guess.window + 1;
    }
}

TEST(WantedRuns, half_as_many_where_the_next_lies_among_them_or_on_the_other_side) {
    for (const bool down : {false, true}) {
        WantedRuns runs;
        BlockId block = 50'000;
        std::uint32_t window = 0;
        for (int i = 0; i < 6; ++i) {
            window = want(runs, block).window;
            block = down ? block - window - 1 : block + window + 1;
        }
        EXPECT_GE(window, 255u);
        // Among those that were given up last, whatever the direction.
        const WantedRuns::Guess among = want(runs, down ? block + 5 : block - 5);
        EXPECT_EQ(among.window, window / 2);
        EXPECT_EQ(among.down, down);
        const WantedRuns::Guess other = want(runs, down ? block + 1000 : block - 1000);
        EXPECT_EQ(other.window, among.window / 2);
        EXPECT_EQ(other.down, !down);
    }
}

TEST(WantedRuns, several_runs_do_not_disturb_each_other) {
    WantedRuns runs;
    BlockId up = 100'000, down = 900'000;
    want(runs, down--);
    for (const std::uint32_t wanted : {0u, 3u, 15u, 63u, 255u}) {
        const std::uint32_t above = want(runs, up).window, below = want(runs, down).window;
        EXPECT_EQ(above, wanted);
        EXPECT_EQ(below, wanted);
        up += above + 1;
        down -= below + 1;
    }
}

TEST(WantedRuns, what_lies_far_away_is_a_run_of_its_own) {
    WantedRuns runs;
    want(runs, 100);
    want(runs, 101);
    EXPECT_EQ(want(runs, 50'000).window, 0u);
    EXPECT_EQ(want(runs, 105).window, 15u);
}

}  // namespace
}  // namespace hiroba::dsm
