// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/floating_point.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <thread>

namespace hiroba::omp {
namespace {

TEST(FloatingPoint, what_is_read_on_one_thread_is_set_on_another) {
    const FloatingPoint before = floating_point();
    std::fesetround(FE_UPWARD);
    const FloatingPoint up = floating_point();
    set_floating_point(before);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    int rounding = 0;
    std::thread([&] {
        set_floating_point(up);
        rounding = std::fegetround();
    }).join();
    EXPECT_EQ(rounding, FE_UPWARD);
}

}  // namespace
}  // namespace hiroba::omp
