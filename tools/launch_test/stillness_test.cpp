// SPDX-License-Identifier: BSD-3-Clause
// Role: when a job counts as standing still.
#include "tools/run/stillness.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

namespace hiroba::tools {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

TEST(Stillness, AJobThatUsesNoProcessorIsToldOnceAfterItsLimit) {
    Stillness job(60 * second, 0);
    std::uint64_t told_at = 0;
    for (std::uint64_t now = job.next_look_ns(); now < 200 * second; now = job.next_look_ns())
        if (job.look(now, 5 * second, 2)) told_at = now;
    // The first look sees what the start has used.
    EXPECT_EQ(told_at, 70 * second);
    EXPECT_EQ(job.next_look_ns(), std::numeric_limits<std::uint64_t>::max());
}

TEST(Stillness, AJobThatComputesForAMomentBeginsAnew) {
    Stillness job(60 * second, 0);
    std::uint64_t used = 0, told_at = 0;
    for (std::uint64_t now = job.next_look_ns(); now < 200 * second; now = job.next_look_ns()) {
        if (now == 50 * second) used += second;
        if (job.look(now, used, 2)) told_at = now;
    }
    EXPECT_EQ(told_at, 110 * second);
}

TEST(Stillness, OneNodeOfManyThatComputesKeepsTheJobFromStandingStill) {
    constexpr std::uint32_t nodes = 100;
    Stillness job(60 * second, 0);
    for (std::uint64_t now = job.next_look_ns(); now < 200 * second; now += 10 * second)
        ASSERT_FALSE(job.look(now, now, nodes)) << now;
}

TEST(Stillness, ALimitOf0IsNone) {
    EXPECT_EQ(Stillness(0, 5).next_look_ns(), std::numeric_limits<std::uint64_t>::max());
}

TEST(Stillness, AProcessUsesProcessorTime) {
    const std::uint64_t before = processor_time_ns(::getpid());
    volatile std::uint64_t spun = 0;
    while (processor_time_ns(::getpid()) == before) spun = spun + 1;
    EXPECT_GT(processor_time_ns(::getpid()), before);
    EXPECT_EQ(processor_time_ns(-1), 0u);
}

}  // namespace
}  // namespace hiroba::tools
