// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/background_flusher.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

TEST(BackgroundFlusher, comes_every_millisecond_while_it_finds_something_small) {
    EXPECT_EQ(BackgroundFlusher::next_wait_ns(64'000'000, true, 2'000, false), 1'000'000u);
}

TEST(BackgroundFlusher, backs_off_to_100_ms_when_it_finds_nothing) {
    std::uint64_t wait = BackgroundFlusher::shortest_ns;
    for (int i = 0; i < 20; ++i) wait = BackgroundFlusher::next_wait_ns(wait, false, 1'500, false);
    EXPECT_EQ(wait, 100'000'000u);
}

TEST(BackgroundFlusher, takes_a_small_share_of_time_when_there_is_much_to_publish) {
    EXPECT_GE(BackgroundFlusher::next_wait_ns(1'000'000, true, 80'000, false), 400u * 80'000u);
    EXPECT_EQ(BackgroundFlusher::next_wait_ns(1'000'000, true, 1'000'000, false), 400'000'000u);
    EXPECT_EQ(BackgroundFlusher::next_wait_ns(1'000'000, true, 30'000'000, false), 1'000'000'000u);
}

TEST(BackgroundFlusher, comes_often_while_somebody_waits_and_takes_a_tenth_of_a_core) {
    EXPECT_EQ(BackgroundFlusher::next_wait_ns(64'000'000, false, 2'000, true), 200'000u);
    EXPECT_EQ(BackgroundFlusher::next_wait_ns(200'000, true, 80'000, true), 800'000u);
}

}  // namespace
}  // namespace hiroba::dsm
