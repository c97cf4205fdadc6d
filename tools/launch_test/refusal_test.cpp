// SPDX-License-Identifier: BSD-3-Clause
// Role: what is refused before anything starts: the exit status and the line of each case.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>

#include "tools/launch_test/command.hpp"

namespace hiroba::tools {
namespace {

/// One line, this status, these words in it, and no node has run.
void expect_refusal(std::vector<std::string> words, int status, const std::string& part,
                    Command::Options options = {}) {
    const Outcome done = outcome_of(std::move(words), std::move(options));
    EXPECT_EQ(done.status, status) << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(occurrences(done.err, "\n"), 1u) << done.err;
    EXPECT_TRUE(done.err.starts_with("hiroba: ")) << done.err;
    EXPECT_NE(done.err.find(part), std::string::npos) << done.err;
}

std::vector<std::string> run(std::vector<std::string> words) {
    words.insert(words.begin(), {stage("bin/hiroba"), "run"});
    return words;
}

const std::string node = stage("programs/launch_node");

std::string file_with(const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = stage("programs/" + name);
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
}

TEST(Refusal, WrongWordsAreUsageErrors) {
    expect_refusal(run({"-n", "0", node}), 64, "-n 0: wanted a whole number from 1 to 1024");
    expect_refusal(run({"-n", "1025", node}), 64, "-n 1025:");
    expect_refusal(run({"-n", "-1", node}), 64, "-1");
    expect_refusal(run({"-n", "two", node}), 64, "-n two:");
    expect_refusal(run({"-n", "2x", node}), 64, "-n 2x:");
    expect_refusal(run({"-n", "99999999999", node}), 64, "-n 99999999999:");
    expect_refusal(run({"-n", "2", "--threads", "0", node}), 64, "--threads 0: wanted");
    expect_refusal(run({"-n", "2", "--bogus", node}), 64, "--bogus");
    expect_refusal(run({"-n", "2", "--bind-to", "socket", node}), 64,
                   "--bind-to socket: wanted core, numa or none");
    expect_refusal(run({"-n", "1000", "--threads", "200", "--bind-to", "core", node}), 78,
                   "need 200000 cores, this job may use");
    expect_refusal(run({"--hosts", "a,b", "--bind-to", "core", node}), 64, "on one host only");
    expect_refusal(run({node}), 64, "-n");
    expect_refusal(run({"-n"}), 64, "-n");
    expect_refusal(run({"-n", "2"}), 64, "no program was named");
    expect_refusal(run({"-n", "2", "--"}), 64, "no program was named");
    expect_refusal({stage("bin/hiroba"), "fly"}, 64, "fly");
    expect_refusal({stage("bin/hiroba")}, 64, "subcommand");
}

TEST(Refusal, TheProgramsOwnOptionsAreNotTheLaunchers) {
    const Outcome bare = outcome_of(run({"-n", "1", "--spmd", "/bin/echo", "-n", "--spmd", "x"}));
    EXPECT_EQ(bare.out, "--spmd x");
    const Outcome marked = outcome_of(run({"-n", "1", "--spmd", "--", "/bin/echo", "--", "-t"}));
    EXPECT_EQ(marked.out, "-- -t\n");
    EXPECT_EQ(outcome_of(run({"--spmd", "-n", "1", "echo", "by PATH"})).out, "by PATH\n");
}

TEST(Refusal, AProgramThatIsNotThereIsAUsageError) {
    expect_refusal(run({"-n", "2", "./no-such-program"}), 64, "./no-such-program: No such file");
    expect_refusal(run({"-n", "2", "no-such-program"}), 64, "no program no-such-program in PATH=");
    expect_refusal(run({"-n", "2", "/tmp"}), 64, "no regular file");
    const std::string closed = file_with("closed", "x", 0644);
    expect_refusal(run({"-n", "2", closed}), 78, "may not be executed (mode 644");
}

TEST(Refusal, ProgramsThatCannotBeTakenOverAreNamed) {
    expect_refusal(run({"-n", "2", stage("programs/launch_static")}), 78, "statically linked");
    expect_refusal(run({"-n", "2", stage("programs/launch_own_openmp")}), 78,
                   "it defines GOMP_parallel");
    const std::string script = file_with("script", "#!/bin/sh\necho ran\n", 0755);
    expect_refusal(run({"-n", "2", script}), 78, "a script for /bin/sh");
    const std::string text = file_with("text", "no program\n", 0755);
    expect_refusal(run({"-n", "2", text}), 78, "no ELF program");
    std::ifstream whole(node, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(whole)), {});
    bytes[18] = static_cast<char>(183);  // e_machine: AArch64
    expect_refusal(run({"-n", "2", file_with("foreign", bytes, 0755)}), 78,
                   "another processor (ELF class 2, machine 183");
    bytes.resize(40);  // in the middle of the ELF header
    expect_refusal(run({"-n", "2", file_with("torn", bytes, 0755)}), 78, "no ELF program");
}

TEST(Refusal, BadValuesOfVariablesNameVariableAndValue) {
    expect_refusal(run({"-n", "2", node}), 64, "HIROBA_HEAP=lots",
                   {.variables = {"HIROBA_HEAP=lots"}});
    expect_refusal(run({"-n", "2", node}), 64, "HIROBA_RACE=maybe",
                   {.variables = {"HIROBA_RACE=maybe"}});
    expect_refusal(run({"-n", "2", node}), 64, "HIROBA_LOG: 'dsm=loud' is neither a level",
                   {.variables = {"HIROBA_LOG=info,dsm=loud"}});
}

TEST(Refusal, UnknownVariablesAreWarnedAboutOnce) {
    const Outcome done = outcome_of(node_command(3, {"status", "0"}),
                                    {.variables = {"HIROBA_HEEP=1G", "HIROBA_X=1"}});
    EXPECT_EQ(done.status, 0);
    EXPECT_EQ(occurrences(done.err, "hiroba: HIROBA_HEEP is no variable of hiroba"), 1u);
    EXPECT_EQ(occurrences(done.err, "\n"), 2u) << done.err;
}

TEST(Refusal, LimitsThatAreTooLowNameTheNumberAndTheSetting) {
    expect_refusal(run({"-n", "2", node}), 78, "Lower HIROBA_HEAP (now 64 TiB a node)",
                   {.variables = {"HIROBA_HEAP=64T"}});
    expect_refusal(run({"-n", "4", node}), 78, "Raise ulimit -v, or lower HIROBA_HEAP",
                   {.limits = {{RLIMIT_AS, 60ul << 30}}});
    expect_refusal(run({"-n", "4", node}), 78, "Raise ulimit -f, or lower HIROBA_HEAP",
                   {.limits = {{RLIMIT_FSIZE, 1ul << 30}}});
    expect_refusal(run({"-n", "4", node}), 78, "Raise ulimit -n",
                   {.limits = {{RLIMIT_NOFILE, 40}}});
}

TEST(Refusal, ASeccompFilterThatForbidsPersonalityIsNamed) {
    auto words = node_command(2, {"status", "0"});
    words.insert(words.begin(), stage("programs/launch_seccomp"));
    expect_refusal(words, 78,
                   "personality(ADDR_NO_RANDOMIZE = 0x40000) was refused: Operation not "
                   "permitted");
}

TEST(Refusal, AMissingRuntimeIsNamedWithItsPath) {
    expect_refusal({stage("bare/bin/hiroba"), "run", "-n", "2", node}, 78,
                   stage("bare/lib/libhiroba.so") + " is missing");
}

}  // namespace
}  // namespace hiroba::tools
