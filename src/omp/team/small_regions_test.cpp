// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/small_regions.hpp"

#include <gtest/gtest.h>

namespace hiroba::omp {
namespace {

using Where = SmallRegions::Where;

/// Runs a region `count` times; returns how often it stayed.
template <class Took>
std::uint32_t run(SmallRegions& regions, const void* code, std::uint32_t count, Took&& took) {
    std::uint32_t stayed = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Where where = regions.choose(code, 2);
        stayed += where == Where::here;
        regions.note(code, 2, took(where));
    }
    return stayed;
}

const int codes[2] = {};

TEST(SmallRegions, are_spread_at_first) {
    SmallRegions regions{true};
    EXPECT_EQ(run(regions, codes, SmallRegions::tried, [](Where) { return 100'000u; }), 0u);
}

TEST(SmallRegions, stay_where_that_takes_less_time) {
    SmallRegions regions{true};
    const auto took = [](Where where) { return where == Where::here ? 5'000u : 100'000u; };
    EXPECT_GT(run(regions, codes, 10'000, took), 9'900u);
}

TEST(SmallRegions, are_spread_where_that_takes_less_time) {
    SmallRegions regions{true};
    const auto took = [](Where where) { return where == Where::here ? 200'000u : 100'000u; };
    EXPECT_LT(run(regions, codes, 10'000, took), 100u);
}

TEST(SmallRegions, do_not_move_for_little) {
    SmallRegions regions{true};
    const auto took = [](Where where) { return where == Where::here ? 90'000u : 100'000u; };
    EXPECT_LT(run(regions, codes, 10'000, took), 100u);
}

TEST(SmallRegions, that_are_long_are_never_tried) {
    SmallRegions regions{true};
    const auto took = [](Where) { return SmallRegions::small_ns + 1; };
    EXPECT_EQ(run(regions, codes, 10'000, took), 0u);
}

// One that is woken late says nothing.
TEST(SmallRegions, bear_a_few_that_take_long) {
    SmallRegions regions{true};
    std::uint32_t i = 0;
    const auto took = [&](Where where) {
        return ++i % 4 == 0 ? 8'000'000u : where == Where::here ? 5'000u : 100'000u;
    };
    EXPECT_GT(run(regions, codes, 10'000, took), 8'000u);
}

TEST(SmallRegions, that_grow_are_spread_again_soon) {
    SmallRegions regions{true};
    const auto small = [](Where where) { return where == Where::here ? 5'000u : 100'000u; };
    run(regions, codes, 100'000, small);
    const auto grown = [](Where where) { return where == Where::here ? 9'000'000u : 5'000'000u; };
    EXPECT_LT(run(regions, codes, 200, grown), 40u);
}

TEST(SmallRegions, are_told_apart) {
    SmallRegions regions{true};
    run(regions, codes, 1000, [](Where w) { return w == Where::here ? 5'000u : 100'000u; });
    EXPECT_EQ(regions.choose(codes, 2), Where::here);
    EXPECT_EQ(regions.choose(codes + 1, 2), Where::spread);
    EXPECT_EQ(regions.choose(codes, 3), Where::spread);
}

}  // namespace
}  // namespace hiroba::omp
