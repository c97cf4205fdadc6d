// SPDX-License-Identifier: BSD-3-Clause
#include "base/held_signals.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/thread_context.hpp"

namespace hiroba {
namespace {

/// As a fault handler leaves its thread: all signals held, `before` the mask of the program.
void wait_in_fault(int number, const sigset_t& before, bool is_in_fault = true) {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    this_thread().mask_before_fault = is_in_fault ? &before : nullptr;
    kill(getpid(), number);
    obey_deadly_signals();
    _exit(33);
}

void on_signal(int) { _exit(34); }

sigset_t none() {
    sigset_t mask{};
    sigemptyset(&mask);
    return mask;
}

using HeldSignals = testing::Test;

TEST(HeldSignals, thatEndTheProgramEndAFault) {
    for (const int number : {SIGHUP, SIGINT, SIGTERM})
        EXPECT_EXIT(
            {
                std::signal(number, SIG_DFL);  // ignored where nohup or a script started the test
                wait_in_fault(number, none());
            },
            testing::KilledBySignal(number), "");
}

TEST(HeldSignals, staySoWhereTheProgramHandlesThem) {
    EXPECT_EXIT(
        {
            std::signal(SIGINT, on_signal);
            wait_in_fault(SIGINT, none());
        },
        testing::ExitedWithCode(33), "");
    EXPECT_EXIT(
        {
            std::signal(SIGINT, SIG_IGN);
            wait_in_fault(SIGINT, none());
        },
        testing::ExitedWithCode(33), "");
}

TEST(HeldSignals, staySoWhereTheProgramBlockedThem) {
    sigset_t blocked = none();
    sigaddset(&blocked, SIGTERM);
    EXPECT_EXIT(wait_in_fault(SIGTERM, blocked), testing::ExitedWithCode(33), "");
}

TEST(HeldSignals, stayWithTheirThreadOutsideOfFaults) {
    EXPECT_EXIT(wait_in_fault(SIGINT, none(), false), testing::ExitedWithCode(33), "");
}

}  // namespace
}  // namespace hiroba
