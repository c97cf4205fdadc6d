// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/spread_misses.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

constexpr BlockId part = SpreadMisses::part_blocks;

/// Lone misses in the part of `first` until it comes, or `most` of them; how many.
std::uint32_t misses_until_it_comes(SpreadMisses& misses, BlockId first, std::uint32_t most) {
    for (std::uint32_t i = 0; i < most; ++i)
        if (misses.missed(first + i * 7 % part)) return i + 1;
    return most + 1;
}

TEST(SpreadMisses, a_part_comes_with_its_fourth_lone_miss) {
    SpreadMisses misses;
    EXPECT_EQ(misses_until_it_comes(misses, 5 * part, 10), SpreadMisses::wanted_min);
    EXPECT_EQ(misses_until_it_comes(misses, 0, 10), SpreadMisses::wanted_min);
}

TEST(SpreadMisses, misses_of_other_parts_do_not_count) {
    SpreadMisses misses;
    for (BlockId i = 0; i < 1000; ++i) EXPECT_FALSE(misses.missed(i * part + i % part));
}

TEST(SpreadMisses, a_miss_that_begins_a_row_is_no_lone_one) {
    SpreadMisses misses;
    for (BlockId row = 0; row < 8; ++row) {
        EXPECT_FALSE(misses.missed(10 * part + row * 8));
        misses.in_a_row(10 * part + row * 8);
    }
}

TEST(SpreadMisses, the_sample_lies_in_the_part) {
    for (BlockId block = 0; block < 10 * part; ++block)
        EXPECT_EQ(SpreadMisses::begin_of(SpreadMisses::sample_with(block)),
                  SpreadMisses::begin_of(block));
}

/// Brings `count` parts, and says of their samples what is true.
void bring(SpreadMisses& misses, BlockId from, std::uint32_t count, bool used) {
    for (BlockId first = from * part; first < (from + count) * part; first += part) {
        misses_until_it_comes(misses, first, part);
        misses.left_out(first + 9);
        if (used)
            misses.missed(first + 9);
        else
            misses.stale(first + 1);
    }
}

TEST(SpreadMisses, where_samples_are_written_before_their_use_more_misses_are_wanted) {
    SpreadMisses misses;
    bring(misses, 0, 20, false);
    EXPECT_EQ(misses.wanted(), 2 * SpreadMisses::wanted_min);
    bring(misses, 0, 200, false);
    EXPECT_EQ(misses.wanted(), SpreadMisses::wanted_max);
    EXPECT_EQ(misses_until_it_comes(misses, 500 * part, part), SpreadMisses::wanted_max);
    bring(misses, 600, 200, true);
    EXPECT_EQ(misses.wanted(), SpreadMisses::wanted_min);
}

// A table that nobody writes again is read bit by bit: how soon says nothing.
TEST(SpreadMisses, samples_that_are_neither_used_nor_written_say_nothing) {
    SpreadMisses misses;
    for (BlockId first = 0; first < 1000 * part; first += part) {
        EXPECT_EQ(misses_until_it_comes(misses, first, 10), SpreadMisses::wanted_min);
        misses.left_out(first + 9);
    }
}

// A boundary of which a few blocks are read in each step.
TEST(SpreadMisses, misses_of_several_steps_are_not_added_up) {
    SpreadMisses misses;
    for (int step = 0; step < 100; ++step) {
        for (const BlockId block : {part + 3, part + 25, part + 47})
            EXPECT_FALSE(misses.missed(block));
        misses.stale(part + 25);
    }
}

TEST(SpreadMisses, a_sample_is_judged_once) {
    SpreadMisses misses;
    misses_until_it_comes(misses, part, 10);
    misses.left_out(part + 9);
    for (int i = 0; i < 100; ++i) misses.stale(part + 9);
    EXPECT_EQ(misses.wanted(), SpreadMisses::wanted_min);
}

}  // namespace
}  // namespace hiroba::dsm
