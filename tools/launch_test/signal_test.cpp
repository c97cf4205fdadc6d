// SPDX-License-Identifier: BSD-3-Clause
// Role: signals, the terminal, and that nothing is left behind.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "base/latch.hpp"
#include "tools/launch_test/command.hpp"

namespace hiroba::tools {
namespace {

constexpr std::uint64_t limit_ns = 10'000'000'000;

/// Process numbers that `launch_node processes` has printed.
std::vector<pid_t> printed_processes(const std::string& out) {
    std::vector<pid_t> all;
    for (auto at = out.find(" is "); at != std::string::npos; at = out.find(" is ", at + 1))
        all.push_back(std::atoi(out.c_str() + at + 4));
    return all;
}

/// The process of the rank, as it has printed it itself; -1 if it has not.
pid_t process_of(const std::string& out, int rank) {
    const std::string name = "rank " + std::to_string(rank) + " is ";
    const auto at = out.find(name);
    return at == std::string::npos ? -1 : std::atoi(out.c_str() + at + name.size());
}

/// Waits until `tracer` has attached to the process; false after the limit.
bool is_traced_by(pid_t pid, pid_t tracer) {
    const std::string wanted = "TracerPid:\t" + std::to_string(tracer);
    Backoff backoff;
    for (const std::uint64_t deadline = now_ns() + limit_ns; now_ns() < deadline; backoff.pause()) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/status");
        for (std::string line; std::getline(file, line);)
            if (line == wanted) return true;
    }
    return false;
}

/// Waits until the process is in `state`, as /proc has it ('\0': gone); false after the limit.
bool comes_to(pid_t pid, char state) {
    Backoff backoff;
    const std::uint64_t deadline = now_ns() + limit_ns;
    while (state_of(pid) != state) {
        if (now_ns() > deadline) return false;
        backoff.pause();
    }
    return true;
}

/// Presses Ctrl-C at a person's pace until the launcher has ended, at most 10 times. One press may
/// not do: two that come before the launcher has looked are one pending signal, as for any process;
/// rank 0, which the terminal signals too, may answer first; and a loaded machine may spread two
/// over more than the second in which they count as twice.
void interrupt_until_it_ends(Command& job) {
    for (int press = 0; press < 10 && state_of(job.pid()) != '\0'; ++press) {
        job.type("\x03");
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
}

TEST(Signals, ThoseSentToTheLauncherReachRankZeroOnce) {
    Command job(node_command(3, {"signals"}));
    ASSERT_TRUE(job.await_output("ready\n"));
    for (int number : {SIGUSR1, SIGUSR2, SIGHUP, SIGQUIT, SIGINT}) {
        job.send(number);
        ASSERT_TRUE(job.await_output("got " + std::to_string(number) + "\n"));
    }
    job.send(SIGTERM);
    const Outcome done = job.finish();
    EXPECT_EQ(done.status, 5) << done.err;
    EXPECT_EQ(occurrences(done.out, "got "), 6u) << done.out;
}

TEST(Signals, TheTerminalsSignalsReachRankZeroOnceAndNoWorker) {
    Command job(node_command(3, {"signals"}), {.terminal = true});
    ASSERT_TRUE(job.await_output("ready"));
    // Many rounds: a second copy that comes early enough would merge with the first.
    constexpr std::size_t rounds = 20;
    for (std::size_t round = 1; round <= rounds; ++round) {
        job.type("\x1c");
        ASSERT_TRUE(job.await_output("got 3\r", round));
        job.send(SIGUSR1);  // Behind whatever the launcher would have passed on.
        ASSERT_TRUE(job.await_output("got 10\r", round));
    }
    job.type("\x03");
    ASSERT_TRUE(job.await_output("got 2\r"));
    job.send(SIGTERM);
    const Outcome done = job.finish();
    EXPECT_EQ(done.status, 5) << done.out;
    EXPECT_EQ(occurrences(done.out, "got 3\r"), rounds) << done.out;
}

TEST(Signals, TwoInterruptsWithinASecondKillAll) {
    Command job(node_command(3, {"signals"}), {.terminal = true});
    ASSERT_TRUE(job.await_output("ready"));
    interrupt_until_it_ends(job);
    const Outcome done = job.finish();
    EXPECT_EQ(done.status, 130);
    EXPECT_NE(done.out.find("interrupted twice"), std::string::npos) << done.out;
}

TEST(Signals, AnInterruptThatRankZeroDoesNotHandleEndsTheJob) {
    Command job(node_command(3, {"processes"}), {.terminal = true});
    ASSERT_TRUE(job.await_output("all there"));
    job.type("\x03");
    EXPECT_EQ(job.finish().status, 130);
}

TEST(Signals, AStoppedJobStopsAllNodesAndContinues) {
    auto words = node_command(3, {"signals"});
    words.insert(words.begin(), stage("programs/launch_job_shell"));
    Command job(words, {.terminal = true});
    ASSERT_TRUE(job.await_output("ready"));
    job.type("\x1a");
    ASSERT_TRUE(job.await_output("job stopped"));
    const auto nodes = printed_processes(job.out());
    ASSERT_EQ(nodes.size(), 3u);
    for (pid_t pid : nodes) EXPECT_TRUE(comes_to(pid, 'T'));
    job.type("go on\n");
    // Rank 0 blocks SIGCONT, so it sees that it was continued.
    ASSERT_TRUE(job.await_output("got 18"));
    for (pid_t pid : nodes) EXPECT_TRUE(comes_to(pid, 'S'));
    job.type("\x03");
    ASSERT_TRUE(job.await_output("got 2\r"));
    interrupt_until_it_ends(job);
    EXPECT_EQ(job.finish().status, 130);
}

TEST(Signals, ANodeThatStaysStoppedIsNamedOnce) {
    Command job(node_command(3, {"processes"}), {.terminal = true});
    ASSERT_TRUE(job.await_output("all there"));
    const auto nodes = printed_processes(job.out());
    ASSERT_EQ(nodes.size(), 3u);
    ::kill(nodes[1], SIGSTOP);
    ASSERT_TRUE(job.await_output("(process " + std::to_string(nodes[1]) + ") has been stopped"));
    ::kill(nodes[1], SIGCONT);
    EXPECT_TRUE(comes_to(nodes[1], 'S'));
    job.type("\x03");
    EXPECT_EQ(occurrences(job.finish().out, "has been stopped"), 1u);
}

// Reading a stack waits for its thread, and so may take the status of one that ends.
TEST(Signals, ANodeThatEndsWhileItsStackIsReadEndsTheJob) {
    for (int victim : {0, 1}) {
        Command job(node_command(3, {"unstoppable", std::to_string(victim)}));
        ASSERT_TRUE(job.await_output(" is ", 3));
        const pid_t node = process_of(job.out(), victim);
        ASSERT_TRUE(comes_to(node, 'D'));
        EXPECT_EQ(outcome_of({stage("bin/hiroba"), "stacks", std::to_string(job.pid())}).status, 0);
        ASSERT_TRUE(is_traced_by(node, job.pid()));
        ::kill(node, SIGKILL);
        const std::uint64_t killed_at = now_ns();
        const Outcome done = job.finish();
        EXPECT_LT(now_ns() - killed_at, limit_ns);
        EXPECT_EQ(done.status, 1);
        EXPECT_EQ(occurrences(done.err, "hiroba: rank " + std::to_string(victim) + " (process " +
                                            std::to_string(node) +
                                            ") ended, and its status was not seen"),
                  1u)
            << done.err;
    }
}

TEST(Signals, ASignalEndsTheRanksThatRankZeroHasLeftBehind) {
    // An ordinary program: rank 0 leaves, and rank 1 stays.
    Command job(
        {stage("bin/hiroba"), "run", "--spmd", "-n", "2", "/bin/sh", "-c",
         "echo rank $((HIROBA_JOB_RANK)) is $$; [ $((HIROBA_JOB_RANK)) = 0 ] || exec sleep 60"});
    ASSERT_TRUE(job.await_output(" is ", 2));
    const auto nodes = printed_processes(job.out());
    ASSERT_EQ(nodes.size(), 2u);
    ASSERT_TRUE(comes_to(process_of(job.out(), 0), '\0'));
    job.send(SIGTERM);
    EXPECT_EQ(job.finish().status, 128 + SIGTERM);
    for (pid_t pid : nodes) EXPECT_TRUE(comes_to(pid, '\0'));
}

// Both events wait for the launcher: it looks for the signal first, whose number is lower.
TEST(Signals, ASignalThatComesWithTheEndOfRankZeroEndsTheOthers) {
    Command job({stage("bin/hiroba"), "run", "--spmd", "-n", "2", "/bin/sh", "-c",
                 "trap 'exit 0' HUP; echo rank $((HIROBA_JOB_RANK)) is $$; "
                 "[ $((HIROBA_JOB_RANK)) = 0 ] || exec sleep 60; while :; do sleep .01; done"});
    ASSERT_TRUE(job.await_output(" is ", 2));
    const auto nodes = printed_processes(job.out());
    ASSERT_EQ(nodes.size(), 2u);
    job.send(SIGSTOP);
    ASSERT_TRUE(comes_to(job.pid(), 'T'));
    ::kill(process_of(job.out(), 0), SIGHUP);
    ASSERT_TRUE(comes_to(process_of(job.out(), 0), '\0'));
    job.send(SIGTERM);
    job.send(SIGCONT);
    EXPECT_EQ(job.finish().status, 128 + SIGTERM);
    for (pid_t pid : nodes) EXPECT_TRUE(comes_to(pid, '\0'));
}

/// A job of four nodes that are all there.
struct FourNodes {
    FourNodes() {
        EXPECT_TRUE(job.await_output("all there"));
        nodes = printed_processes(job.out());
        EXPECT_EQ(nodes.size(), 4u);
    }
    Command job{node_command(4, {"processes"})};
    decltype(printed_processes({})) nodes;
};

TEST(Signals, NoNodeOutlivesALauncherThatIsKilled) {
    FourNodes four;
    four.job.send(SIGKILL);
    EXPECT_EQ(four.job.finish().status, 128 + SIGKILL);
    for (pid_t pid : four.nodes) EXPECT_TRUE(comes_to(pid, '\0'));
}

TEST(Signals, NoNodeOutlivesAJobThatWasEnded) {
    FourNodes four;
    ASSERT_GT(four.nodes.size(), 1u);
    ::kill(four.nodes[1], SIGKILL);
    EXPECT_EQ(four.job.finish().status, 128 + SIGKILL);
    for (pid_t pid : four.nodes) EXPECT_EQ(state_of(pid), '\0');
}

}  // namespace
}  // namespace hiroba::tools
