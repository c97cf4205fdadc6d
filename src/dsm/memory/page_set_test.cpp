// SPDX-License-Identifier: BSD-3-Clause
// Role: PageSet against std::set, and walks at once with adders.
#include "dsm/memory/page_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

namespace hiroba::dsm {
namespace {

constexpr std::size_t many = 64 * 64 * 64 * 3 + 17;  // more than one word on every level

std::vector<std::size_t> members(const PageSet& set) {
    std::vector<std::size_t> pages;
    set.for_each_run([&](PageRun run) {
        for (std::size_t page = run.first; page < run.end(); ++page) pages.push_back(page);
    });
    return pages;
}

TEST(page_set, behaves_like_a_set_under_random_changes) {
    const unsigned seed = testing::UnitTest::GetInstance()->random_seed();
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    std::mt19937 random{seed};
    auto set = std::move(*PageSet::create(many));
    std::set<std::size_t> model;
    for (int step = 0; step < 3000; ++step) {
        const std::size_t first = random() % many;
        const PageRun run{first, std::min<std::size_t>(1 + random() % 200, many - first)};
        const std::size_t size_before = model.size();
        if (random() % 3 != 0) {
            for (std::size_t page = run.first; page < run.end(); ++page) model.insert(page);
            EXPECT_EQ(set.add(run), model.size() != size_before);
        } else {
            for (std::size_t page = run.first; page < run.end(); ++page) model.erase(page);
            EXPECT_EQ(set.remove(run), model.size() != size_before);
        }
        EXPECT_EQ(set.contains(first), model.count(first) == 1);
    }
    EXPECT_EQ(members(set), std::vector<std::size_t>(model.begin(), model.end()));
}

TEST(page_set, runs_are_whole_across_words_and_levels) {
    auto set = std::move(*PageSet::create(many));
    set.add({63, 2});
    set.add({4000, 300});
    set.add({64 * 64 * 64 - 1, 2});
    set.add({many - 1, 1});

    std::vector<std::size_t> ends;
    set.for_each_run([&](PageRun run) { ends.insert(ends.end(), {run.first, run.end()}); });

    EXPECT_EQ(ends, (std::vector<std::size_t>{63, 65, 4000, 4300, 262143, 262145, many - 1, many}));
}

TEST(page_set, taking_empties_it) {
    auto set = std::move(*PageSet::create(many));
    set.add({5, 70});
    std::size_t taken = 0;
    set.take_each_run([&](PageRun run) { taken += run.count; });
    EXPECT_EQ(taken, 70u);
    EXPECT_TRUE(members(set).empty());
}

TEST(page_set, nothing_added_during_takes_is_lost) {
    auto set = std::move(*PageSet::create(many));
    std::vector<int> seen(many, 0);
    std::thread adder{[&] {
        for (std::size_t page = 0; page < many; ++page) set.add({page, 1});
    }};
    const auto take = [&] {
        set.take_each_run([&](PageRun run) {
            for (std::size_t page = run.first; page < run.end(); ++page) ++seen[page];
        });
    };
    while (seen[many - 1] == 0) take();
    adder.join();
    take();
    for (std::size_t page = 0; page < many; ++page) ASSERT_EQ(seen[page], 1) << page;
}

}  // namespace
}  // namespace hiroba::dsm
