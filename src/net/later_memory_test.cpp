// SPDX-License-Identifier: BSD-3-Clause
// Role: tests of what later_memory.hpp calculates: ranges are disjoint, inside, and become one
// again.
#include "net/later_memory.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hiroba::net {
namespace {

TEST(FreeRanges, takes_the_first_that_fits_and_joins_neighbours) {
    FreeRanges ranges(100, 50);
    EXPECT_EQ(ranges.take(20), 100u);
    EXPECT_EQ(ranges.take(20), 120u);
    EXPECT_FALSE(ranges.take(20));
    EXPECT_EQ(ranges.take(10), 140u);
    EXPECT_FALSE(ranges.take(1));
    ranges.give_back(100);
    ranges.give_back(140);
    EXPECT_EQ(ranges.taken_at(100), 0u);
    EXPECT_EQ(ranges.taken_at(120), 20u);
    EXPECT_EQ(ranges.taken_at(121), 0u);
    EXPECT_FALSE(ranges.take(30));
    ranges.give_back(120);
    EXPECT_EQ(ranges.take(50), 100u);
}

TEST(FreeRanges, never_overlap_and_are_one_range_in_the_end) {
    constexpr std::uint64_t first = 1000, bytes = 10'000;
    FreeRanges ranges(first, bytes);
    std::mt19937 random(5);
    std::vector<bool> used(bytes);
    std::vector<std::uint64_t> taken;
    for (int step = 0; step < 5000; ++step) {
        if (!taken.empty() && random() % 2 == 0) {
            const std::size_t gone = random() % taken.size();
            const std::uint64_t at = taken[gone], size = ranges.taken_at(at);
            ASSERT_NE(size, 0u);
            for (std::uint64_t i = 0; i < size; ++i) used[at - first + i] = false;
            ranges.give_back(at);
            taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(gone));
            continue;
        }
        const std::uint64_t size = 1 + random() % 900;
        const auto at = ranges.take(size);
        if (!at) continue;
        ASSERT_TRUE(*at >= first && *at + size <= first + bytes);
        for (std::uint64_t i = 0; i < size; ++i) {
            ASSERT_FALSE(used[*at - first + i]) << *at;
            used[*at - first + i] = true;
        }
        taken.push_back(*at);
    }
    for (const std::uint64_t at : taken) ranges.give_back(at);
    EXPECT_EQ(ranges.take(bytes), first);
}

TEST(FreeRanges, of_nothing_have_nothing) { EXPECT_FALSE(FreeRanges(0, 0).take(1)); }

}  // namespace
}  // namespace hiroba::net
