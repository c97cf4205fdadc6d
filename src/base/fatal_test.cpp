// SPDX-License-Identifier: BSD-3-Clause
#include "base/fatal.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/trace.hpp"

namespace hiroba {
namespace {

void exit_zero(int) { _exit(0); }

TEST(FatalDeathTest, EndsByAbortAndPrintsTheValues) {
    EXPECT_EXIT(fatal("block %lu of %u", 7ul, 3u), testing::KilledBySignal(SIGABRT),
                "^hiroba: block 7 of 3\n$");
}

TEST(FatalDeathTest, CannotBeInterceptedByTheProgram) {
    EXPECT_EXIT(
        {
            std::signal(SIGABRT, exit_zero);
            sigset_t abort_only;
            sigemptyset(&abort_only);
            sigaddset(&abort_only, SIGABRT);
            pthread_sigmask(SIG_BLOCK, &abort_only, nullptr);
            fatal("stop");
        },
        testing::KilledBySignal(SIGABRT), "stop");
}

TEST(FatalDeathTest, NamesRankAndHostOnceTheyAreKnown) {
    EXPECT_EXIT(
        {
            set_identity(3, "node07");
            fatal("stop");
        },
        testing::KilledBySignal(SIGABRT), "^hiroba\\[3@node07\\]: stop\n$");
}

TEST(FatalDeathTest, PrintsTheLastTraceRecordsOldestFirst) {
    EXPECT_EXIT(
        {
            set_trace(true);
            for (std::uint64_t i = 0; i < trace_records_max + 2; ++i) trace("step", i, 0x2a);
            trace("last");
            fatal("stop");
        },
        testing::KilledBySignal(SIGABRT),
        "stop\nhiroba: trace -[0-9]+ us: step 0x3 0x2a\n(.*\n)*.*step 0x41 0x2a\n.*last 0x0 "
        "0x0\n$");
}

TEST(FatalDeathTest, BrokenInvariantPrintsConditionAndValues) {
    const unsigned rank = 5;
    EXPECT_EXIT(HIROBA_INVARIANT(rank < 4, "rank %u of 4", rank), testing::KilledBySignal(SIGABRT),
                "invariant rank < 4 broken: rank 5 of 4");
    HIROBA_INVARIANT(rank == 5, "rank %u", rank);
}

TEST(FatalDeathTest, DieExitsWithItsStatusAndRunsNoExitHandlers) {
    EXPECT_EXIT(
        {
            std::atexit([] { std::fputs("handler ran", stderr); });
            die(exit_environment, "%s is %d. Raise it", "limit", 4);
        },
        testing::ExitedWithCode(78), "^hiroba: limit is 4. Raise it\n$");
}

}  // namespace
}  // namespace hiroba
