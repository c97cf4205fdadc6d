// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/publisher.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

TEST(Publisher, comes_every_millisecond_while_it_finds_something_small) {
    EXPECT_EQ(Publisher::next_wait_ns(64'000'000, true, 2'000, false), 1'000'000u);
}

TEST(Publisher, backs_off_to_100_ms_when_it_finds_nothing) {
    std::uint64_t wait = Publisher::shortest_ns;
    for (int i = 0; i < 20; ++i) wait = Publisher::next_wait_ns(wait, false, 1'500, false);
    EXPECT_EQ(wait, 100'000'000u);
}

TEST(Publisher, takes_a_small_share_of_time_when_there_is_much_to_publish) {
    EXPECT_GE(Publisher::next_wait_ns(1'000'000, true, 80'000, false), 400u * 80'000u);
    EXPECT_EQ(Publisher::next_wait_ns(1'000'000, true, 1'000'000, false), 400'000'000u);
    EXPECT_EQ(Publisher::next_wait_ns(1'000'000, true, 30'000'000, false), 1'000'000'000u);
}

TEST(Publisher, comes_often_while_somebody_waits_and_takes_a_tenth_of_a_core) {
    EXPECT_EQ(Publisher::next_wait_ns(64'000'000, false, 2'000, true), 200'000u);
    EXPECT_EQ(Publisher::next_wait_ns(200'000, true, 80'000, true), 800'000u);
}

}  // namespace
}  // namespace hiroba::dsm
