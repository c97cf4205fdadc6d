// SPDX-License-Identifier: BSD-3-Clause
#include "net/provider/poll_watch.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace hiroba::net {
namespace {

TEST(PollWatch, tells_of_polls_of_others_once) {
    PollWatch watch;
    EXPECT_FALSE(watch.others_polled());
    std::thread{[&] {
        watch.count_poll();
        watch.count_poll();
    }}.join();
    EXPECT_TRUE(watch.others_polled());
    EXPECT_FALSE(watch.others_polled());
}

TEST(PollWatch, leaves_out_polls_of_the_thread_that_asks) {
    PollWatch watch;
    EXPECT_FALSE(watch.others_polled());
    watch.count_poll();
    EXPECT_FALSE(watch.others_polled());
}

}  // namespace
}  // namespace hiroba::net
