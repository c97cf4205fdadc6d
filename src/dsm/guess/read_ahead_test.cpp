// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/read_ahead.hpp"

#include <gtest/gtest.h>

#include <array>

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

TEST(ReadAhead, a_run_goes_on_where_its_next_miss_is_expected) {
    ReadAhead ahead;
    EXPECT_FALSE(ahead.goes_on_at(100));
    ahead.brought(ahead.missed(100, 0), 100, 0);
    EXPECT_TRUE(ahead.goes_on_at(101));
    ahead.brought(ahead.missed(101, 0), 101, 16);
    EXPECT_TRUE(ahead.goes_on_at(118));
    for (const BlockId elsewhere : {99u, 100u, 102u, 117u, 119u})
        EXPECT_FALSE(ahead.goes_on_at(elsewhere)) << elsewhere;
    ahead.below().brought(1'000, 4);
    EXPECT_TRUE(ahead.goes_on_at(995));
    for (const BlockId elsewhere : {994u, 996u, 1'001u})
        EXPECT_FALSE(ahead.goes_on_at(elsewhere)) << elsewhere;
}

TEST(ReadAhead, a_jump_starts_again) {
    ReadAhead ahead;
    ahead.brought(ahead.missed(100, 0), 100, 16);
    EXPECT_EQ(window_of(ahead, 500), 0u);
}

// As a transposition of an array of 128 planes: a row of each plane in turn.
TEST(ReadAhead, runs_side_by_side_do_not_disturb_each_other) {
    for (const BlockId apart : {256u, 8192u, 9001u}) {
        ReadAhead ahead;
        constexpr BlockId planes = 128;
        std::array<BlockId, planes> next;
        for (BlockId plane = 0; plane < planes; ++plane) next[plane] = 100 + plane * apart;
        std::uint32_t brought = 0;
        for (const std::uint32_t wanted : {0u, 1u, 2u, 4u, 8u}) {
            for (BlockId& block : next) {
                const std::uint32_t window = window_of(ahead, block);
                EXPECT_LE(window, wanted);
                brought += window;
                block += window + 1;
            }
        }
        // Those that fall upon a full set begin again.
        EXPECT_GT(brought, planes * 14) << apart;
    }
}

TEST(ReadAhead, runs_that_ended_make_room) {
    ReadAhead ahead;
    for (BlockId block = 0; block < 100'000; block += 3) window_of(ahead, block);
    EXPECT_EQ(window_of(ahead, 500'000), 0u);
    EXPECT_EQ(window_of(ahead, 500'001), 1u);
    EXPECT_EQ(window_of(ahead, 500'003), 2u);
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
