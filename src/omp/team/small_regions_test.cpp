// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/small_regions.hpp"

#include <gtest/gtest.h>

namespace hiroba::omp {
namespace {

using Where = SmallRegions::Where;

std::uint64_t now_ns = 1;

/// Runs a region `count` times; returns how often it stayed.
template <class Took>
std::uint32_t run(SmallRegions& regions, const void* code, std::uint32_t count, Took&& took) {
    std::uint32_t stayed = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Where where = regions.choose(code, 2, now_ns);
        stayed += where == Where::here;
        const std::uint64_t took_ns = took(where);
        now_ns += took_ns;
        regions.note(code, 2, took_ns);
    }
    return stayed;
}

const int codes[2] = {};

TEST(SmallRegions, are_spread_at_first) {
    SmallRegions regions;
    EXPECT_EQ(run(regions, codes, SmallRegions::tried, [](Where) { return 100'000u; }), 0u);
}

TEST(SmallRegions, stay_where_that_takes_less_time) {
    SmallRegions regions;
    const auto took = [](Where where) { return where == Where::here ? 5'000u : 100'000u; };
    EXPECT_GT(run(regions, codes, 10'000, took), 9'900u);
}

TEST(SmallRegions, are_spread_where_that_takes_less_time) {
    SmallRegions regions;
    const auto took = [](Where where) { return where == Where::here ? 200'000u : 100'000u; };
    EXPECT_LT(run(regions, codes, 10'000, took), 100u);
}

TEST(SmallRegions, do_not_move_for_little) {
    SmallRegions regions;
    const auto took = [](Where where) { return where == Where::here ? 90'000u : 100'000u; };
    EXPECT_LT(run(regions, codes, 10'000, took), 100u);
}

TEST(SmallRegions, that_are_long_are_never_tried) {
    SmallRegions regions;
    const auto took = [](Where) { return SmallRegions::small_ns + 1; };
    EXPECT_EQ(run(regions, codes, 10'000, took), 0u);
}

// One that is woken late says nothing.
TEST(SmallRegions, bear_a_few_that_take_long) {
    SmallRegions regions;
    std::uint32_t i = 0;
    const auto took = [&](Where where) {
        return ++i % 4 == 0 ? 8'000'000u : where == Where::here ? 5'000u : 100'000u;
    };
    EXPECT_GT(run(regions, codes, 10'000, took), 8'000u);
}

TEST(SmallRegions, that_grow_are_spread_again_soon) {
    SmallRegions regions;
    const auto small = [](Where where) { return where == Where::here ? 5'000u : 100'000u; };
    run(regions, codes, 100'000, small);
    const auto grown = [](Where where) { return where == Where::here ? 9'000'000u : 5'000'000u; };
    EXPECT_LT(run(regions, codes, 200, grown), 40u);
}

TEST(SmallRegions, are_told_apart) {
    SmallRegions regions;
    run(regions, codes, 1000, [](Where w) { return w == Where::here ? 5'000u : 100'000u; });
    EXPECT_EQ(regions.choose(codes, 2, now_ns), Where::here);
    EXPECT_EQ(regions.choose(codes + 1, 2, now_ns), Where::spread);
    EXPECT_EQ(regions.choose(codes, 3, now_ns), Where::spread);
}

/// A small region, and what follows it up to its next.
std::uint32_t run_with_others(std::uint32_t count, std::uint64_t spread_ns, std::uint64_t here_ns,
                              std::uint64_t others_ns, std::uint64_t others_here_ns,
                              std::uint32_t passed_over_each = 0) {
    SmallRegions regions;
    std::uint32_t stayed = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const bool stays = regions.choose(codes, 2, now_ns) == Where::here;
        stayed += stays ? 1 : 0;
        const std::uint64_t took_ns = stays ? here_ns : spread_ns;
        regions.note(codes, 2, took_ns);
        now_ns += took_ns + (stays ? others_here_ns : others_ns);
        if (passed_over_each == 0 || i % passed_over_each != 0) continue;
        regions.pass_over();
        now_ns += 50'000'000;
    }
    return stayed;
}

// A stencil of two loops: what one leaves on a node the other one fetches, or a serial part does.
TEST(SmallRegions, are_spread_where_others_lose_more) {
    EXPECT_LT(run_with_others(10'000, 500'000, 100'000, 3'000'000, 5'000'000), 100u);
    EXPECT_LT(run_with_others(10'000, 500'000, 100'000, 100'000, 600'000), 100u);
    EXPECT_LT(run_with_others(10'000, 500'000, 100'000, 500'000, 850'000), 100u);
}

TEST(SmallRegions, stay_where_others_lose_less) {
    EXPECT_GT(run_with_others(10'000, 500'000, 100'000, 500'000, 500'000), 9'900u);
    EXPECT_GT(run_with_others(10'000, 500'000, 100'000, 500'000, 600'000), 9'900u);
    EXPECT_GT(run_with_others(10'000, 50'000, 5'000, 50'000'000, 50'000'000), 9'900u);
}

// What is passed over in between is not its round.
TEST(SmallRegions, do_not_count_what_is_passed_over) {
    EXPECT_GT(run_with_others(10'000, 500'000, 100'000, 500'000, 500'000, 11), 9'800u);
}

}  // namespace
}  // namespace hiroba::omp
