// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/use_predictor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hiroba::dsm {
namespace {

constexpr SyncPlace barrier{0x1000, SyncKind::barrier};
constexpr SyncPlace region{0x2000, SyncKind::region};

std::vector<BlockId> expected_at(UsePredictor& predictor, SyncPlace place) {
    predictor.learn();
    std::vector<BlockId> blocks;
    for (const UsePredictor::Run& run : predictor.arrive(place))
        for (BlockId block = run.first; block < run.end(); ++block) blocks.push_back(block);
    return blocks;
}

TEST(UsePredictor, what_was_missed_behind_a_place_is_expected_there_and_nowhere_else) {
    UsePredictor predictor;
    EXPECT_TRUE(expected_at(predictor, barrier).empty());
    for (const BlockId block : {9u, 5u, 6u, 5u}) predictor.note_miss(block);
    EXPECT_TRUE(expected_at(predictor, region).empty());
    predictor.note_miss(100);
    EXPECT_EQ(expected_at(predictor, barrier), (std::vector<BlockId>{5, 6, 9}));
    EXPECT_EQ(expected_at(predictor, region), (std::vector<BlockId>{100}));
}

TEST(UsePredictor, later_misses_join_the_runs_that_are_known) {
    UsePredictor predictor;
    expected_at(predictor, barrier);
    for (const BlockId block : {20u, 21u, 40u}) predictor.note_miss(block);
    expected_at(predictor, barrier);
    for (const BlockId block : {30u, 21u, 22u, 10u}) predictor.note_miss(block);
    EXPECT_EQ(expected_at(predictor, barrier), (std::vector<BlockId>{10, 20, 21, 22, 30, 40}));
}

TEST(UsePredictor, a_run_ends_after_so_many_blocks) {
    UsePredictor predictor;
    expected_at(predictor, barrier);
    for (BlockId block = 0; block < 40; ++block) predictor.note_miss(block);
    predictor.learn();
    const auto runs = predictor.arrive(barrier);
    ASSERT_EQ(runs.size(), 3u);
    EXPECT_EQ(runs[0].count, UsePredictor::run_max);
    EXPECT_EQ(runs[2].count, 8u);
}

TEST(UsePredictor, what_the_caller_does_not_keep_is_forgotten) {
    UsePredictor predictor;
    expected_at(predictor, barrier);
    for (const BlockId block : {1u, 10u, 20u}) predictor.note_miss(block);
    expected_at(predictor, barrier);
    predictor.filter([](UsePredictor::Run& run) { return run.first != 10; });
    EXPECT_EQ(expected_at(predictor, barrier), (std::vector<BlockId>{1, 20}));
}

/// Whether its only run is due behind the next arrival.
bool is_due_at(UsePredictor& predictor, SyncPlace place, bool does_something = true) {
    predictor.learn();
    const auto runs = predictor.arrive(place);
    if (runs.empty() || !predictor.is_due(runs[0])) return false;
    if (does_something) predictor.note_guess(runs[0]);
    return true;
}

TEST(UsePredictor, what_is_missed_behind_a_loop_is_due_at_its_end) {
    UsePredictor predictor;
    for (unsigned i = 0; i < 10; ++i) EXPECT_FALSE(is_due_at(predictor, barrier));
    predictor.note_miss(7);
    for (unsigned step = 0; step < 3; ++step) {
        is_due_at(predictor, region);
        for (unsigned i = 1; i <= 10; ++i) EXPECT_EQ(is_due_at(predictor, barrier), i == 10) << i;
    }
}

// A loop with two barriers: each place is left at once, so that the first guesses are too early.
TEST(UsePredictor, guesses_that_came_too_early_are_mended_by_the_next_misses) {
    UsePredictor predictor;
    const auto loop = [&](unsigned times, bool does_something, std::vector<unsigned> due) {
        for (unsigned i = 1; i <= times; ++i) {
            const bool is_due = std::find(due.begin(), due.end(), i) != due.end();
            EXPECT_EQ(is_due_at(predictor, barrier, does_something), is_due) << i;
            if (i == times) predictor.note_miss(7);
            is_due_at(predictor, region);
        }
    };
    loop(10, true, {});
    // In vain: what is due is not given up any more.
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_TRUE(is_due_at(predictor, barrier));
        is_due_at(predictor, region);
    }
    loop(7, false, {1, 2, 3, 4, 5, 6, 7});
    loop(10, true, {8});
    for (unsigned i = 1; i <= 10; ++i) {
        EXPECT_EQ(is_due_at(predictor, barrier), i == 10) << i;
        is_due_at(predictor, region);
    }
}

TEST(UsePredictor, samples_become_rarer_with_trust) {
    UsePredictor::Run run{.first = 100, .count = 4};
    const auto until_sample = [&run] {
        unsigned asked = 1;
        while (UsePredictor::next_sample(run) == 0) ++asked;
        return asked;
    };
    EXPECT_EQ(until_sample(), 4u);
    run.trust = 1;
    EXPECT_EQ(until_sample(), 8u);
    run.trust = 200;
    EXPECT_EQ(until_sample(), 32u);
}

TEST(UsePredictor, more_misses_and_places_than_there_is_room_for_are_left_out) {
    UsePredictor predictor;
    for (std::uintptr_t place = 1; place < 4096; ++place) {
        expected_at(predictor, {place * 16, SyncKind::barrier});
        predictor.note_miss(3);
    }
    expected_at(predictor, barrier);
    for (BlockId block = 0; block < 300'000; ++block) predictor.note_miss(block * 2);
    predictor.learn();
    EXPECT_LE(predictor.arrive(barrier).size(), 4096u);
}

}  // namespace
}  // namespace hiroba::dsm
