// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/floating_point.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <thread>

namespace hiroba::omp {
namespace {

TEST(FloatingPoint, what_is_read_on_one_thread_is_set_on_another) {
    const FloatingPoint before = floating_point();
    std::fesetround(FE_UPWARD);
    const FloatingPoint up = floating_point();
    set_floating_point(before);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    int rounding = 0;
    std::thread([&] {
        set_floating_point(up);
        rounding = std::fegetround();
    }).join();
    EXPECT_EQ(rounding, FE_UPWARD);
}

TEST(MadeThreads, threads_keep_what_they_were_made_with_until_their_team_leaves_them) {
    MadeThreads threads;
    threads.begin_region(2, 10, false);
    threads.begin_region(4, 20, false);
    EXPECT_EQ(threads.of(1).of_leader, 10u);
    EXPECT_EQ(threads.of(2).of_leader, 20u);
    const std::uint32_t former = threads.of(3).serial;
    threads.begin_region(3, 30, false);
    EXPECT_EQ(threads.of(2).of_leader, 20u);
    threads.begin_region(4, 40, false);
    EXPECT_EQ(threads.of(2).of_leader, 20u);
    EXPECT_EQ(threads.of(3).of_leader, 40u);
    EXPECT_NE(threads.of(3).serial, former);
    threads.begin_region(8, 50, true);
    EXPECT_EQ(threads.of(1).of_leader, 50u);
}

TEST(MadeThreads, the_newest_of_many_groups_are_told_apart) {
    MadeThreads threads;
    for (std::uint32_t size = 2; size <= 9; ++size) threads.begin_region(size, size, false);
    EXPECT_EQ(threads.of(1).of_leader, 2u);
    for (std::uint32_t thread = 6; thread <= 8; ++thread)
        EXPECT_EQ(threads.of(thread).of_leader, thread + 1);
}

}  // namespace
}  // namespace hiroba::omp
