// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/made_threads.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hiroba::omp {
namespace {

/// A region of `size` threads, whose leader computes as `leader`.
void region(MadeThreads& threads, std::uint32_t size, FloatingPoint leader,
            PoolKind pool = PoolKind::gnu) {
    threads.begin_region(size, pool, [leader] { return Inheritance{leader, nullptr}; });
}

FloatingPoint maker_of(const MadeThreads& threads, std::uint32_t thread) {
    return threads.of(thread).from.floating_point;
}

TEST(MadeThreads, threads_keep_what_they_were_made_with_until_their_team_leaves_them) {
    MadeThreads threads;
    region(threads, 2, 10);
    region(threads, 4, 20);
    EXPECT_EQ(maker_of(threads, 1), 10u);
    EXPECT_EQ(maker_of(threads, 2), 20u);
    const std::uint32_t former = threads.of(3).serial;
    region(threads, 3, 30);
    EXPECT_EQ(maker_of(threads, 2), 20u);
    region(threads, 4, 40);
    EXPECT_EQ(maker_of(threads, 2), 20u);
    EXPECT_EQ(maker_of(threads, 3), 40u);
    EXPECT_NE(threads.of(3).serial, former);
}

TEST(MadeThreads, those_of_llvm_never_end) {
    MadeThreads threads;
    region(threads, 4, 10, PoolKind::llvm);
    const std::uint32_t former = threads.of(3).serial;
    region(threads, 2, 20, PoolKind::llvm);
    region(threads, 5, 30, PoolKind::llvm);
    EXPECT_EQ(maker_of(threads, 3), 10u);
    EXPECT_EQ(threads.of(3).serial, former);
    EXPECT_EQ(maker_of(threads, 4), 30u);
}

TEST(MadeThreads, the_newest_of_many_groups_are_told_apart) {
    MadeThreads threads;
    for (std::uint32_t size = 2; size <= 9; ++size) region(threads, size, size);
    EXPECT_EQ(maker_of(threads, 1), 2u);
    for (std::uint32_t thread = 6; thread <= 8; ++thread)
        EXPECT_EQ(maker_of(threads, thread), thread + 1);
}

std::vector<const void*> taken;
const InheritanceHooks hooks{nullptr,
                             [](const void* attributes) noexcept { taken.push_back(attributes); }};

TEST(OwnInheritance, attributes_are_taken_over_once_and_again_behind_help) {
    taken.clear();
    const int of_main = 0, of_leader = 0;
    const FloatingPoint now = floating_point();
    MadeThreads threads;
    threads.begin_region(2, PoolKind::gnu, [&] { return Inheritance{now, &of_main}; });
    OwnInheritance own;
    EXPECT_TRUE(own.enter(1, threads, PoolKind::gnu, now, hooks));
    EXPECT_FALSE(own.enter(1, threads, PoolKind::gnu, now, hooks));
    EXPECT_FALSE(own.help({now, nullptr}, hooks));
    EXPECT_FALSE(own.enter(1, threads, PoolKind::gnu, now, hooks));
    EXPECT_TRUE(own.help({now, &of_leader}, hooks));
    EXPECT_TRUE(own.enter(1, threads, PoolKind::gnu, now, hooks));
    EXPECT_EQ(taken, (std::vector<const void*>{&of_main, &of_leader, &of_main}));
}

}  // namespace
}  // namespace hiroba::omp
