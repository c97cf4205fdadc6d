// SPDX-License-Identifier: BSD-3-Clause
// Role: free page runs against a map of single pages.
#include "dsm/heap/page_runs.hpp"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace hiroba::dsm {
namespace {

TEST(PageRuns, takes_the_smallest_fitting_run_and_the_lowest_of_equals) {
    auto runs = PageRuns::create(100);
    ASSERT_TRUE(runs);
    for (std::uint32_t page = 0; page < 100; ++page) ASSERT_EQ(runs->take(1, 1, 0)->first, page);
    EXPECT_FALSE(runs->take(1, 1, 0));
    runs->give(10, 4);
    runs->give(20, 2);
    runs->give(30, 2);
    runs->give(40, 1);
    EXPECT_EQ(runs->take(2, 1, 0)->first, 20u);
    EXPECT_EQ(runs->take(2, 1, 0)->first, 30u);
    EXPECT_EQ(runs->take(2, 1, 0)->first, 10u);
    EXPECT_EQ(runs->runs(), 2u);
    EXPECT_EQ(runs->free_pages(), 3u);
}

TEST(PageRuns, agree_with_a_page_map_over_many_random_calls) {
    constexpr std::uint32_t pages = 2000;
    auto runs = PageRuns::create(pages);
    ASSERT_TRUE(runs);
    std::vector<bool> used(pages), ever(pages);
    std::vector<ArenaRun> held;
    std::mt19937_64 random{5};
    for (int step = 0; step < 60'000; ++step) {
        if (random() % 2 == 0 || held.empty()) {
            const auto count = static_cast<std::uint32_t>(1 + random() % 40);
            const std::uint32_t alignment = 1u << random() % 5;
            const auto phase = static_cast<std::uint32_t>(random() % alignment);
            if (const auto run = runs->take(count, alignment, phase)) {
                ASSERT_EQ((run->first + phase) % alignment, 0u);
                bool fresh = true;
                for (std::uint32_t page = run->first; page < run->first + count; ++page) {
                    ASSERT_LT(page, pages);
                    ASSERT_FALSE(used[page]) << "step " << step;
                    fresh &= !ever[page];
                    used[page] = ever[page] = true;
                }
                ASSERT_TRUE(fresh || !run->fresh) << "step " << step;
                held.push_back(*run);
            }
        } else {
            std::swap(held[random() % held.size()], held.back());
            runs->give(held.back().first, held.back().count);
            for (std::uint32_t i = 0; i < held.back().count; ++i)
                used[held.back().first + i] = false;
            held.pop_back();
        }
        std::uint32_t free_runs = 0, free_pages = 0;
        if (step % 64 == 0) {
            for (std::uint32_t page = 0; page < pages; ++page) {
                free_pages += !used[page];
                free_runs += !used[page] && (page == 0 || used[page - 1]);
            }
            ASSERT_EQ(runs->free_pages(), free_pages);
            ASSERT_EQ(runs->runs(), free_runs);
        }
    }
    for (const ArenaRun& run : held) runs->give(run.first, run.count);
    EXPECT_EQ(runs->runs(), 1u);
    EXPECT_EQ(runs->free_pages(), pages);
}

TEST(PageRuns, what_is_taken_as_used_holds_every_used_page_in_whole_blocks) {
    constexpr std::uint32_t pages = 4096, phase = 3, alignment = 4;
    auto runs = PageRuns::create(pages);
    ASSERT_TRUE(runs);
    // Free and used: [100, 260), of which [100, 160) is fresh again, and [1000, 1002).
    ASSERT_TRUE(runs->take(2000, 1, 0));
    runs->give_fresh(100, 60);
    runs->give(160, 100);
    runs->give(1000, 2);
    EXPECT_EQ(runs->used_free_pages(), 102u);

    ArenaRun parts[4];
    ASSERT_EQ(runs->take_used(16, alignment, phase, parts), 1u);
    EXPECT_EQ((parts[0].first + phase) % alignment, 0u);
    EXPECT_EQ(parts[0].count % alignment, 0u);
    EXPECT_GE(parts[0].first, 157u);  // a block may begin before the first used page
    EXPECT_GE(parts[0].first + parts[0].count, 257u);
    EXPECT_LE(parts[0].first + parts[0].count, 260u);
    EXPECT_FALSE(runs->take_at(parts[0].first, 1)) << "it is free and taken at once";

    const std::uint32_t left = runs->used_free_pages();
    runs->give_fresh(parts[0].first, parts[0].count);
    EXPECT_EQ(runs->used_free_pages(), left);
    EXPECT_EQ(runs->take_used(16, alignment, phase, parts), 0u);
    const auto again = runs->take(parts[0].count, 1, 0);
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->fresh);
}

TEST(PageRuns, a_huge_fresh_run_is_not_searched_for_used_pages) {
    auto runs = PageRuns::create(~std::uint32_t{0} - 2);
    ASSERT_TRUE(runs);
    ASSERT_TRUE(runs->take(100, 1, 0));
    runs->give(0, 100);
    ArenaRun parts[2];
    ASSERT_EQ(runs->take_used(16, 1, 0, parts), 1u);
    EXPECT_EQ(parts[0].first, 0u);
    EXPECT_EQ(parts[0].count, 100u);
}

}  // namespace
}  // namespace hiroba::dsm
