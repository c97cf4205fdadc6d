// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/pull_times.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

constexpr std::uint64_t least_ns = 60'000;

TEST(PullTimes, waits_last_what_is_asked_where_releases_come_at_once) {
    PullTimes times;
    EXPECT_EQ(times.longest_wait_ns(least_ns), least_ns);
    for (int i = 0; i < 100; ++i) times.note(5'000);
    EXPECT_EQ(times.longest_wait_ns(least_ns), least_ns);
}

TEST(PullTimes, waits_last_four_times_as_long_as_releases_take) {
    PullTimes times;
    for (int i = 0; i < 100; ++i) times.note(200'000);
    EXPECT_NEAR(static_cast<double>(times.longest_wait_ns(least_ns)), 800'000.0, 1'000.0);
    for (int i = 0; i < 100; ++i) times.note(5'000);
    EXPECT_EQ(times.longest_wait_ns(least_ns), least_ns);
}

// A node that lost its processor for a second says nothing about the next one.
TEST(PullTimes, one_late_release_makes_waits_little_longer) {
    PullTimes times;
    times.note(1'000'000'000);
    EXPECT_LE(times.longest_wait_ns(least_ns), 700'000u);
    for (int i = 0; i < 100; ++i) times.note(1'000'000'000);
    EXPECT_LE(times.longest_wait_ns(least_ns), 5'000'000u);
}

}  // namespace
}  // namespace hiroba::dsm
