// SPDX-License-Identifier: BSD-3-Clause
#include "base/latch.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace hiroba {
namespace {

TEST(Latch, LosesNoUpdateAmongFourThreads) {
    constexpr int threads_max = 4;
    constexpr int rounds = 20'000;
    Latch latch;
    int first = 0;
    int second = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < threads_max; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                const std::lock_guard guard{latch};
                ++first;
                second = first;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(first, threads_max * rounds);
    EXPECT_EQ(second, first);
}

TEST(Latch, TryLockFailsWhileHeldAndZeroedMemoryIsOpen) {
    alignas(Latch) std::byte memory[sizeof(Latch)]{};
    auto& latch = *reinterpret_cast<Latch*>(memory);
    EXPECT_TRUE(latch.try_lock());
    EXPECT_FALSE(latch.try_lock());
    latch.unlock();
    EXPECT_TRUE(latch.try_lock());
}

TEST(Backoff, SpinsBrieflyThenYields) {
    Backoff backoff;
    for (int i = 0; i < 100; ++i) backoff.pause();
    EXPECT_EQ(backoff.yields(), 0u);
    backoff.pause();
    EXPECT_EQ(backoff.yields(), 1u);
    backoff.reset();
    EXPECT_EQ(backoff.yields(), 0u);
}

}  // namespace
}  // namespace hiroba
