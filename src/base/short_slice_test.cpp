// SPDX-License-Identifier: BSD-3-Clause
#include "base/short_slice.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <cerrno>
#include <thread>

#include "base/test_parts/thread_slice.hpp"

namespace hiroba {
namespace {

TEST(ShortSlice, IsGrantedToThisThreadAndNotHandedOn) {
    std::thread([] {
        const double before = slice_of_this_thread();
        if (before == 0) GTEST_SKIP() << "/proc/thread-self/sched does not tell slices";
        ask_for_short_slices(ShortSlice::of_service);
        if (slice_of_this_thread() == before) GTEST_SKIP() << "a kernel before 6.12";
        EXPECT_LT(slice_of_this_thread(), before);
        std::thread([&] { EXPECT_EQ(slice_of_this_thread(), before); }).join();
    }).join();
}

TEST(ShortSlice, LeavesPolicyNicenessAndErrnoAlone) {
    std::thread([] {
        ASSERT_EQ(setpriority(PRIO_PROCESS, 0, 3), 0);
        errno = ENOTTY;
        ask_for_short_slices(ShortSlice::of_service);
        EXPECT_EQ(errno, ENOTTY);
        EXPECT_EQ(getpriority(PRIO_PROCESS, 0), 3);
        EXPECT_EQ(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
        const sched_param none{};
        ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
        ask_for_short_slices(ShortSlice::of_service);
        EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    }).join();
}

TEST(ShortSlice, OfAProgramsThreadIsLongerAndLeavesItsPolicyAsItWas) {
    std::thread([] {
        const double before = slice_of_this_thread();
        ask_for_short_slices(ShortSlice::of_program);
        EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
        const double of_program = slice_of_this_thread();
        if (of_program == before) GTEST_SKIP() << "no slices told, or a kernel before 6.12";
        ask_for_short_slices(ShortSlice::of_service);
        EXPECT_LT(slice_of_this_thread(), of_program);
    }).join();
}

}  // namespace
}  // namespace hiroba
