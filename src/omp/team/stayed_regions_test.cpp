// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/stayed_regions.hpp"

#include <gtest/gtest.h>

namespace hiroba::omp {
namespace {

TEST(StayedRegions, each_function_has_its_own_sum) {
    const char code[2] = {};
    StayedRegions stayed;
    stayed.begin(1'000);
    stayed.note(&code[0], 5);
    stayed.note(&code[1], 7);
    stayed.note(&code[0], 6);
    ASSERT_EQ(stayed.functions().size(), 2u);
    EXPECT_EQ(stayed.functions()[0].ns, 11u);
    EXPECT_EQ(stayed.functions()[0].count, 2u);
    EXPECT_EQ(stayed.functions()[1].ns, 7u);
    EXPECT_EQ(stayed.count(), 3u);
}

TEST(StayedRegions, what_has_no_room_counts_together) {
    const char code[100] = {};
    StayedRegions stayed;
    for (const char& each : code) stayed.note(&each, 1);
    std::uint64_t count = 0;
    for (const StayedRegions::Function& each : stayed.functions()) count += each.count;
    EXPECT_EQ(count, 100u);
    EXPECT_EQ(stayed.functions().back().code, nullptr);
    EXPECT_EQ(stayed.functions().front().count, 1u);
}

TEST(StayedRegions, a_tenth_of_the_time_is_much) {
    const char code = 0;
    StayedRegions stayed;
    EXPECT_FALSE(stayed.is_much(0));
    stayed.begin(1'000);
    stayed.begin(5'000);
    stayed.note(&code, 100);
    EXPECT_TRUE(stayed.is_much(2'000));
    EXPECT_FALSE(stayed.is_much(2'001));
}

}  // namespace
}  // namespace hiroba::omp
