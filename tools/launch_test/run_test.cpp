// SPDX-License-Identifier: BSD-3-Clause
// Role: jobs that run: collectives, environment, reports, and how they end.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tools/launch_test/command.hpp"

namespace hiroba::tools {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

TEST(Run, GathersBytesAndDescriptorsOfEveryNode) {
    for (int nodes : {1, 2, 5}) {
        const Outcome done = outcome_of(node_command(nodes, {"gather"}));
        EXPECT_EQ(done.status, 0) << done.err;
        EXPECT_EQ(occurrences(done.out, " gathered\n"), static_cast<std::size_t>(nodes));
        EXPECT_EQ(done.err, "");
    }
}

TEST(Run, GathersFromSixtyFourNodes) {
    const Outcome done = outcome_of(node_command(64, {"gather"}));
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(occurrences(done.out, " of 64 gathered\n"), 64u);
}

TEST(Run, GathersTheLargestPieceAndRefusesALargerOne) {
    const Outcome done = outcome_of(node_command(4, {"big_gather"}));
    EXPECT_EQ(done.status, 0) << done.err;
}

TEST(Run, EndsAJobWhoseNodesGatherDifferentSizes) {
    const Outcome done = outcome_of(node_command(2, {"unequal_gather"}));
    EXPECT_EQ(done.status, 70);
    EXPECT_NE(done.err.find("rank 1 is in collective 2 with 9 bytes, rank 0 in 2 with 8"),
              std::string::npos)
        << done.err;
}

TEST(Run, EndsWithTheStatusOfRankZero) {
    for (int status : {0, 3, 255}) {
        const Outcome done = outcome_of(node_command(3, {"status", std::to_string(status)}));
        EXPECT_EQ(done.status, status);
        EXPECT_EQ(done.err, "");
    }
}

TEST(Run, AWorkersDeathEndsTheJobAtOnceAndNamesIt) {
    for (int number : {SIGKILL, SIGSEGV, SIGTERM}) {
        const Outcome done = quick_outcome_of(
            2 * second_ns, node_command(4, {"killed", "2", std::to_string(number)}));
        EXPECT_EQ(done.status, 128 + number);
        EXPECT_LT(done.took_ns, 2 * second_ns);
        EXPECT_EQ(occurrences(done.err, "\n"), 1u) << done.err;
        EXPECT_NE(done.err.find("hiroba: rank 2 (process "), std::string::npos) << done.err;
        EXPECT_NE(done.err.find("was killed by signal " + std::to_string(number)),
                  std::string::npos)
            << done.err;
    }
}

TEST(Run, ADeathIsToldToTheOthersWhenTheyHaveTimeToReact) {
    const Outcome done = quick_outcome_of(3 * second_ns, node_command(4, {"bereft", "2"}),
                                          {.variables = {"HIROBA_LOSS_GRACE=400"}});
    EXPECT_EQ(done.status, 137);
    EXPECT_EQ(occurrences(done.out, " lost 2\n"), 3u) << done.out;
    EXPECT_EQ(occurrences(done.err, "\n"), 1u) << done.err;
    EXPECT_NE(done.err.find("hiroba: rank 2 (process "), std::string::npos) << done.err;
    EXPECT_GE(done.took_ns, 4 * second_ns / 10);
    EXPECT_LT(done.took_ns, 3 * second_ns);
    EXPECT_EQ(outcome_of(node_command(4, {"bereft", "2"})).out, "");
}

TEST(Run, ASignalThatKillsRankZeroIsTheStatus) {
    const Outcome done = outcome_of(node_command(2, {"killed", "0", "11"}));
    EXPECT_EQ(done.status, 139);
    EXPECT_NE(done.err.find("rank 0 (process "), std::string::npos);
    EXPECT_NE(done.err.find("signal 11 (Segmentation fault)"), std::string::npos) << done.err;
}

TEST(Run, AWorkerThatFailsIsTheStatus) {
    const Outcome done = quick_outcome_of(2 * second_ns, node_command(3, {"exits", "1", "78"}));
    EXPECT_EQ(done.status, 78);
    EXPECT_NE(done.err.find("hiroba: rank 1 (process "), std::string::npos);
    EXPECT_NE(done.err.find("ended with status 78.\n"), std::string::npos) << done.err;
    EXPECT_LT(done.took_ns, 2 * second_ns);
}

TEST(Run, AWorkerThatLeavesEarlyIsAFailureThoughItsStatusIsZero) {
    const Outcome done = quick_outcome_of(3 * second_ns, node_command(3, {"exits", "1", "0"}));
    EXPECT_EQ(done.status, 1);
    EXPECT_NE(done.err.find("left with status 0 while the program was still running"),
              std::string::npos)
        << done.err;
    EXPECT_LT(done.took_ns, 3 * second_ns);
}

TEST(Run, RankZeroThatEndsWithoutGoodByeTakesTheOthersAlong) {
    const Outcome done = quick_outcome_of(second_ns, node_command(3, {"exits", "0", "4"}));
    EXPECT_EQ(done.status, 4);
    EXPECT_EQ(done.err, "");
    EXPECT_LT(done.took_ns, second_ns);
}

TEST(Run, AWorkerThatStaysIsKilledASecondAfterRankZero) {
    const Outcome done = quick_outcome_of(3 * second_ns, node_command(2, {"linger"}));
    EXPECT_EQ(done.status, 0);
    EXPECT_NE(done.err.find("did not end within 1 s of rank 0: killed"), std::string::npos);
    EXPECT_GE(done.took_ns, second_ns);
    EXPECT_LT(done.took_ns, 3 * second_ns);
}

TEST(Run, AWorkerWhoseMemoryTheKernelGivesBackIsWaitedFor) {
    const Outcome done = quick_outcome_of(20 * second_ns, node_command(2, {"tidies"}));
    EXPECT_EQ(done.status, 0);
    EXPECT_EQ(done.err, "");
    EXPECT_GE(done.took_ns, 2 * second_ns);
}

TEST(Run, AnyNodeMayEndTheJobWithAStatus) {
    for (const char* rank : {"0", "2"}) {
        const Outcome done =
            quick_outcome_of(2 * second_ns, node_command(3, {"request", rank, "9"}));
        EXPECT_EQ(done.status, 9);
        EXPECT_LT(done.took_ns, 2 * second_ns);
    }
}

TEST(Run, GarbageOnTheControlChannelEndsTheJobWithALine) {
    for (const char* bytes : {"x", "sixteen or more bytes of nothing"}) {
        const Outcome done = outcome_of(node_command(2, {"garbage", bytes}));
        EXPECT_EQ(done.status, 70);
        EXPECT_NE(done.err.find("hiroba: rank 1 "), std::string::npos) << done.err;
    }
}

TEST(Run, AProgramThatTheRuntimeIsNotAttachedToIsNoSuccess) {
    const Outcome quiet = outcome_of(node_command(2, {"unattached"}));
    EXPECT_EQ(quiet.status, 78);
    EXPECT_NE(quiet.err.find("runtime was not attached"), std::string::npos) << quiet.err;
    const Outcome failed = outcome_of(node_command(2, {"unattached", "5"}));
    EXPECT_EQ(failed.status, 5);
    EXPECT_NE(failed.err.find("runtime was not attached"), std::string::npos) << failed.err;
}

TEST(Run, SpmdNodesNeedNoRuntimeAndAllAreWaitedFor) {
    auto words = node_command(3, {"unattached"});
    words.insert(words.begin() + 2, "--spmd");
    EXPECT_EQ(outcome_of(words).status, 0);
    words.back() = "gather";
    const Outcome done = outcome_of(words);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(occurrences(done.out, " gathered\n"), 3u);
}

TEST(Run, AnSpmdNodeThatLeavesWithoutAWordEndsTheJobOnceOthersStayBehind) {
    for (const char* const rank : {"0", "1"}) {
        auto words = node_command(3, {"exits", rank, "0"});
        words.insert(words.begin() + 2, "--spmd");
        const Outcome done = quick_outcome_of(3 * second_ns, words);
        EXPECT_EQ(done.status, 1);
        EXPECT_NE(done.err.find(std::string("hiroba: rank ") + rank), std::string::npos);
        EXPECT_NE(done.err.find("left with status 0 while the program was still running: it did "
                                "not destroy its Network"),
                  std::string::npos)
            << done.err;
    }
}

TEST(Run, OnlyRankZeroHasTheStandardInput) {
    const Outcome done =
        outcome_of(node_command(3, {"input"}), {.variables = {}, .input = "a\nb\n"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.out, "a\nb\n");
}

TEST(Run, TheProgramSeesItsOwnEnvironmentAndEqualAddresses) {
    const Command::Options plain{.variables = {"MINE=1"}};
    const Outcome done = outcome_of(node_command(3, {"environment"}), plain);
    EXPECT_EQ(done.status, 0) << done.err;
    // The lowest descriptor that the process that runs the tests has left free.
    const int lowest = dup(0);
    close(lowest);
    EXPECT_NE(done.out.find("next descriptor " + std::to_string(lowest) +
                            "\nPATH=/usr/bin:/bin\nLANG=C\nHOME=/\nMINE=1\n"),
              std::string::npos)
        << done.out;
    for (const char* ours : {"HIROBA", "LD_PRELOAD", "LD_BIND_NOW", "GLIBC_TUNABLES"})
        EXPECT_EQ(occurrences(done.out, ours), 0u) << done.out;
}

TEST(Run, TheUsersOwnLoaderVariablesComeBack) {
    const std::string preload = "LD_PRELOAD=" + stage("lib/libhiroba.so");
    const Command::Options own{
        .variables = {preload, "GLIBC_TUNABLES=glibc.malloc.check=0", "LD_BIND_NOW=yes"}};
    const Outcome done = outcome_of(node_command(2, {"environment"}), own);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(occurrences(done.out, preload + "\n"), 1u) << done.out;
    EXPECT_EQ(occurrences(done.out, "GLIBC_TUNABLES=glibc.malloc.check=0\n"), 1u) << done.out;
    EXPECT_EQ(occurrences(done.out, "LD_BIND_NOW=yes\n"), 1u) << done.out;
}

TEST(Run, CountersBecomeOneTableWhenAskedFor) {
    EXPECT_EQ(outcome_of(node_command(2, {"counts"})).err, "");
    const Outcome done = outcome_of(node_command(2, {"counts"}), {.variables = {"HIROBA_STATS=1"}});
    EXPECT_NE(done.err.find("read_faults               100          101           201\n"),
              std::string::npos)
        << done.err;
    EXPECT_NE(done.err.find("parallel_regions           10           11            21\n"),
              std::string::npos)
        << done.err;
}

TEST(Run, ARaceIsReportedOnceWithItsVariable) {
    const Outcome done = outcome_of(node_command(2, {"races", "0"}));
    EXPECT_EQ(done.status, 0);
    EXPECT_EQ(occurrences(done.err, "hiroba: write-write race: 4 bytes at 0x"), 2u) << done.err;
    EXPECT_EQ(occurrences(done.err, "(call_count in launch_node) by nodes 0 and 1, seen by node "),
              1u);
    EXPECT_EQ(occurrences(done.err, "(in no variable: heap)"), 1u) << done.err;
}

TEST(Run, RacesStopAtTwentyLinesUnlessAllAreWanted) {
    const Outcome some = outcome_of(node_command(2, {"races", "30"}));
    EXPECT_EQ(occurrences(some.err, "write-write race:"), 20u);
    EXPECT_EQ(occurrences(some.err, "(racy_bytes+7 in launch_node)"), 1u) << some.err;
    EXPECT_NE(some.err.find("races at 12 more places"), std::string::npos) << some.err;
    const Outcome all =
        outcome_of(node_command(2, {"races", "30"}), {.variables = {"HIROBA_RACE=all"}});
    EXPECT_EQ(occurrences(all.err, "write-write race:"), 32u);
    const Outcome none =
        outcome_of(node_command(2, {"races", "30"}), {.variables = {"HIROBA_RACE=off"}});
    EXPECT_EQ(none.err, "");
}

}  // namespace
}  // namespace hiroba::tools
