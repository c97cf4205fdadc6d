// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/closed_signals.hpp"

#include <gtest/gtest.h>

namespace hiroba::abi {
namespace {

constexpr KernelMask user1 = dsm::mask_of(SIGUSR1), user2 = dsm::mask_of(SIGUSR2),
                     fault = dsm::mask_of(SIGFPE), closed = user1 | user2;

TEST(ClosedSignals, a_thread_shows_what_its_maker_has_blocked_and_not_what_the_runtime_closes) {
    ClosedSignals signals;
    const KernelMask kernel = signals.begin(closed, user1 | fault);
    EXPECT_EQ(kernel, closed | fault);
    EXPECT_EQ(signals.shown(kernel), user1 | fault);
}

TEST(ClosedSignals, what_is_blocked_and_restored_stays_closed) {
    ClosedSignals signals;
    KernelMask kernel = signals.begin(closed, 0);
    const KernelMask before = signals.shown(kernel);
    kernel = signals.change(SIG_BLOCK, closed | fault, kernel);
    EXPECT_EQ(signals.shown(kernel), closed | fault);
    kernel = signals.change(SIG_SETMASK, before, kernel);
    EXPECT_EQ(signals.shown(kernel), 0u);
    EXPECT_EQ(kernel, closed);
}

TEST(ClosedSignals, what_is_unblocked_is_open_from_then_on) {
    ClosedSignals signals;
    KernelMask kernel = signals.begin(closed, user1);
    kernel = signals.change(SIG_UNBLOCK, user1, kernel);
    EXPECT_EQ(kernel, user2);
    EXPECT_EQ(signals.shown(kernel), 0u);
    kernel = signals.change(SIG_SETMASK, user1, kernel);
    EXPECT_EQ(kernel, closed);
    EXPECT_EQ(signals.shown(signals.change(SIG_SETMASK, 0, kernel)), 0u);
    kernel = signals.begin(closed, 0);
    EXPECT_EQ(kernel, closed) << "another thread's";
}

TEST(ClosedSignals, a_blocked_fault_is_shown_and_stays_open) {
    constexpr KernelMask access = dsm::mask_of(SIGSEGV);
    ClosedSignals signals;
    KernelMask kernel = signals.change(SIG_SETMASK, access | user1, 0);
    EXPECT_EQ(kernel, user1);
    EXPECT_EQ(signals.shown(kernel), access | user1);
    kernel = signals.change(SIG_UNBLOCK, access, kernel);
    EXPECT_EQ(signals.shown(kernel), user1);
    ClosedSignals of_another;
    kernel = of_another.begin(closed, access);
    EXPECT_EQ(kernel, closed);
    EXPECT_EQ(of_another.shown(kernel), access);
}

TEST(ClosedSignals, a_thread_that_closes_none_has_the_kernels_mask) {
    ClosedSignals signals;
    KernelMask kernel = signals.change(SIG_BLOCK, user2, fault);
    EXPECT_EQ(signals.shown(kernel), kernel);
    kernel = signals.change(SIG_SETMASK, user1, kernel);
    EXPECT_EQ(kernel, user1);
}

TEST(ClosedSignals, one_that_was_opened_for_a_thread_is_closed_again_unless_the_program_opens_it) {
    ClosedSignals signals;
    KernelMask kernel = signals.begin(closed, 0);
    EXPECT_EQ(signals.close_again(user1, kernel & ~user1), closed);
    kernel = signals.change(SIG_UNBLOCK, user1, kernel);
    EXPECT_EQ(signals.close_again(user1, kernel), user2);
}

}  // namespace
}  // namespace hiroba::abi
