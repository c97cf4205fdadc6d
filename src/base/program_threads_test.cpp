// SPDX-License-Identifier: BSD-3-Clause
// Role: the program's threads are told from the runtime's own.
#include "base/program_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/service_thread.hpp"

namespace hiroba {
namespace {

// A join returns before the kernel takes the thread off its list.
bool is_soon_alone(const ProgramThreads& threads) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    while (!threads.is_caller_alone() && std::chrono::steady_clock::now() < limit)
        std::this_thread::yield();
    return threads.is_caller_alone();
}

TEST(ProgramThreads, service_threads_are_none_of_the_program) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer has a thread of its own, which starts none of ours";
#endif
    const ProgramThreads threads;
    EXPECT_TRUE(is_soon_alone(threads));  // an earlier test's threads may just have ended
    std::atomic<bool> runs{false}, may_end{false};
    const auto body = [&] {
        runs = true;
        runs.notify_one();
        may_end.wait(false);
    };
    std::thread service = start_service_thread("is one of the runtime's", body);
    runs.wait(false);
    EXPECT_TRUE(threads.is_caller_alone());
    runs = false;
    std::thread programs{body};
    runs.wait(false);
    EXPECT_FALSE(threads.is_caller_alone());
    may_end = true;
    may_end.notify_all();
    programs.join();
    service.join();
    EXPECT_TRUE(is_soon_alone(threads));
}

}  // namespace
}  // namespace hiroba
