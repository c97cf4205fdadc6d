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

TEST(PollWatch, has_a_watcher_called_away_once_when_another_thread_polls_on) {
    PollWatch watch;
    EXPECT_FALSE(watch.others_polled());
    const auto calls_of_poller = [&watch](int polls) {
        int calls = 0;
        std::thread{[&] {
            for (int i = 0; i < polls; ++i) calls += watch.count_poll();
        }}.join();
        return calls;
    };
    EXPECT_EQ(calls_of_poller(100), 0);  // no thread watches
    EXPECT_TRUE(watch.others_polled());
    watch.watch_device();
    EXPECT_EQ(calls_of_poller(1), 0);
    EXPECT_FALSE(watch.called_away());
    EXPECT_EQ(calls_of_poller(100), 1);
    EXPECT_TRUE(watch.called_away());
    watch.watch_device();
    watch.unwatch_device();
    EXPECT_EQ(calls_of_poller(100), 0);
}

}  // namespace
}  // namespace hiroba::net
