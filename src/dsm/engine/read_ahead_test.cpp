// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/engine/read_ahead.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

std::uint32_t window_of(ReadAhead& ahead, BlockId block, std::uint32_t last_time = 0) {
    const ReadAhead::Guess guess = ahead.missed(block, last_time);
    ahead.brought(guess, block, guess.window);
    return guess.window;
}

TEST(ReadAhead, scattered_misses_bring_nothing_along) {
    ReadAhead ahead;
    for (const BlockId block : {100u, 50u, 90u, 7u}) EXPECT_EQ(window_of(ahead, block), 0u);
}

TEST(ReadAhead, misses_in_a_row_double_the_window_up_to_its_limit) {
    ReadAhead ahead;
    BlockId block = 100;
    for (const std::uint32_t wanted : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 64u}) {
        const std::uint32_t window = window_of(ahead, block);
        EXPECT_EQ(window, wanted);
        block += window + 1;
    }
}

TEST(ReadAhead, a_jump_starts_again) {
    ReadAhead ahead;
    ahead.brought(ahead.missed(100, 0), 100, 16);
    EXPECT_EQ(window_of(ahead, 500), 0u);
}

TEST(ReadAhead, runs_side_by_side_do_not_disturb_each_other) {
    ReadAhead ahead;
    BlockId one = 100, other = 9000;
    for (const std::uint32_t wanted : {0u, 1u, 2u, 4u}) {
        EXPECT_EQ(window_of(ahead, one), wanted);
        EXPECT_EQ(window_of(ahead, other), wanted);
        one += wanted + 1;
        other += wanted + 1;
    }
}

TEST(ReadAhead, a_run_that_begins_as_before_comes_at_once) {
    ReadAhead ahead;
    EXPECT_EQ(window_of(ahead, 100, 12), 12u);
    EXPECT_EQ(window_of(ahead, 113), 24u);
    EXPECT_EQ(window_of(ahead, 700, 500), ReadAhead::blocks_max);
}

TEST(ReadAhead, says_how_long_the_run_is_and_where_it_began) {
    ReadAhead ahead;
    EXPECT_EQ(ahead.brought(ahead.missed(100, 0), 100, 0), 1u);
    const ReadAhead::Guess second = ahead.missed(101, 0);
    EXPECT_EQ(second.head, 100u);
    EXPECT_EQ(ahead.brought(second, 101, 1), 3u);
}

}  // namespace
}  // namespace hiroba::dsm
