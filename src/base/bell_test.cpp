// SPDX-License-Identifier: BSD-3-Clause
#include "base/bell.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <chrono>
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

std::atomic<int> interrupted{0};

// Each interruption makes the kernel's call fail.
TEST(Bell, LeavesErrnoAlone) {
    struct sigaction counts {
    }, former{};
    counts.sa_handler = [](int) { interrupted.fetch_add(1); };
    ASSERT_EQ(sigaction(SIGUSR1, &counts, &former), 0);
    Bell bell;
    std::thread sleeper([&] {
        errno = ENOTTY;
        bell.sleep_past(0);
        EXPECT_EQ(errno, ENOTTY);
    });
    while (interrupted.load() < 20) {
        pthread_kill(sleeper.native_handle(), SIGUSR1);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    bell.ring();
    sleeper.join();
    sigaction(SIGUSR1, &former, nullptr);
}

}  // namespace
}  // namespace hiroba
