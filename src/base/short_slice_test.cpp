// SPDX-License-Identifier: BSD-3-Clause
#include "base/short_slice.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <thread>

namespace hiroba {
namespace {

/// What the kernel says of this thread's slice; 0 where it does not tell.
double slice_of_this_thread() {
    std::ifstream file("/proc/thread-self/sched");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("se.slice")) return std::stod(line.substr(line.find(':') + 1));
    }
    return 0;
}

TEST(ShortSlice, IsGrantedToThisThreadAndNotHandedOn) {
    std::thread([] {
        const double before = slice_of_this_thread();
        if (before == 0) GTEST_SKIP() << "/proc/thread-self/sched does not tell slices";
        ask_for_short_slices();
        if (slice_of_this_thread() == before) GTEST_SKIP() << "a kernel before 6.12";
        EXPECT_LT(slice_of_this_thread(), before);
        std::thread([&] { EXPECT_EQ(slice_of_this_thread(), before); }).join();
    }).join();
}

TEST(ShortSlice, LeavesPolicyNicenessAndErrnoAlone) {
    std::thread([] {
        ASSERT_EQ(setpriority(PRIO_PROCESS, 0, 3), 0);
        errno = ENOTTY;
        ask_for_short_slices();
        EXPECT_EQ(errno, ENOTTY);
        EXPECT_EQ(getpriority(PRIO_PROCESS, 0), 3);
        EXPECT_EQ(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
        const sched_param none{};
        ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
        ask_for_short_slices();
        EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    }).join();
}

}  // namespace
}  // namespace hiroba
