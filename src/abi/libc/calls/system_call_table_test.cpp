// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/calls/system_call_table.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <set>

namespace hiroba::abi {
namespace {

TEST(SystemCallTable, each_call_has_one_row_and_finds_it) {
    std::set<std::uint16_t> seen;
    for (const SystemCall& row : all_system_calls()) {
        EXPECT_TRUE(seen.insert(row.number).second) << "twice: " << row.number;
        EXPECT_EQ(find_system_call(row.number), &row);
    }
    EXPECT_EQ(find_system_call(SYS_getpid), nullptr);
    EXPECT_EQ(find_system_call(-1), nullptr);
    EXPECT_EQ(find_system_call(1 << 20), nullptr);
}

TEST(SystemCallTable, arguments_are_the_six_there_are) {
    for (const SystemCall& row : all_system_calls()) {
        for (const Touch& touch : row.touches) {
            if (touch.use == Use::none) continue;
            EXPECT_LT(touch.argument, 6) << row.number;
            EXPECT_TRUE(touch.count < 6 || touch.count == no_count) << row.number;
            EXPECT_NE(touch.argument, touch.count) << row.number;
        }
    }
}

TEST(SystemCallTable, what_is_counted_or_sized_says_how_long) {
    using enum Use;
    for (const SystemCall& row : all_system_calls()) {
        for (const Touch& touch : row.touches) {
            if (touch.use == in || touch.use == out) {
                EXPECT_GT(touch.bytes, 0) << row.number;
            }
            const bool needs_count = touch.use == in_vector || touch.use == out_vector ||
                                     touch.use == in_messages || touch.use == out_messages ||
                                     touch.use == address || touch.use == in_letter ||
                                     touch.use == out_letter;
            if (needs_count) {
                EXPECT_NE(touch.count, no_count) << row.number;
            }
        }
    }
}

TEST(SystemCallTable, reading_fills_its_buffer_and_writing_does_not) {
    EXPECT_EQ(find_system_call(SYS_read)->touches[0].use, Use::out);
    EXPECT_EQ(find_system_call(SYS_write)->touches[0].use, Use::in);
    EXPECT_TRUE(find_system_call(SYS_read)->descriptor);
    EXPECT_TRUE(find_system_call(SYS_openat)->opens);
}

// What is not told to open would have a number that another node takes for its own.
TEST(SystemCallTable, what_makes_a_descriptor_opens) {
    constexpr int pidfd_open = 434;
    for (const int number :
         {SYS_open,           SYS_openat,        SYS_creat,       SYS_dup,
          SYS_socket,         SYS_accept,        SYS_accept4,     SYS_memfd_create,
          SYS_epoll_create,   SYS_epoll_create1, SYS_eventfd,     SYS_eventfd2,
          SYS_timerfd_create, SYS_signalfd,      SYS_signalfd4,   SYS_inotify_init,
          SYS_inotify_init1,  SYS_fanotify_init, SYS_userfaultfd, SYS_perf_event_open,
          SYS_mq_open,        pidfd_open}) {
        ASSERT_NE(find_system_call(number), nullptr) << number;
        EXPECT_TRUE(find_system_call(number)->opens) << number;
    }
}

}  // namespace
}  // namespace hiroba::abi
