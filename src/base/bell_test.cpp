// SPDX-License-Identifier: BSD-3-Clause
#include "base/bell.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

namespace hiroba {
namespace {

TEST(Bell, LosesNoRing) {
    constexpr std::uint32_t times = 20'000;
    Bell asked, answered;
    std::atomic<std::uint32_t> questions{0}, answers{0};
    std::thread answering([&] {
        for (std::uint32_t done = 0; done < times;) {
            const std::uint32_t seen = asked.rings();
            if (questions.load() == done) {
                asked.sleep_past(seen);
                continue;
            }
            answers.store(++done);
            answered.ring();
        }
    });
    for (std::uint32_t asking = 1; asking <= times; ++asking) {
        questions.store(asking);
        asked.ring();
        for (std::uint32_t seen = answered.rings(); answers.load() != asking;
             seen = answered.rings())
            answered.sleep_past(seen);
    }
    answering.join();
}

TEST(Bell, LeavesErrnoAlone) {
    Bell bell;
    std::thread ringing([&] { bell.ring(); });
    errno = ENOTTY;
    bell.sleep_past(0);
    EXPECT_EQ(errno, ENOTTY);
    ringing.join();
}

}  // namespace
}  // namespace hiroba
