// SPDX-License-Identifier: BSD-3-Clause
#include "net/bootstrap/job.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "net/bootstrap/control_packet.hpp"

namespace hiroba::net {
namespace {

constexpr const char* variables[] = {"HIROBA_JOB_RANK", "HIROBA_JOB_NODES", "HIROBA_JOB_THREADS",
                                     "HIROBA_JOB_CONTROL_FD", "HIROBA_JOB_KEY"};

/// A process as the launcher starts it.
class JobInfoTest : public testing::Test {
protected:
    JobInfoTest() {
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_), 0);
        const std::string fd = std::to_string(ends_[0]);
        const char* const values[] = {"0002", "0004", "0003", fd.c_str(), "00ff"};
        for (int i = 0; i < 5; ++i) ::setenv(variables[i], values[i], 1);
    }
    ~JobInfoTest() override {
        for (const char* name : variables) ::unsetenv(name);
        for (int end : ends_) ::close(end);
    }
    int ends_[2];
};

TEST_F(JobInfoTest, IsWhatTheLauncherSaidAndTellsItSo) {
    const auto job = read_job_info();
    ASSERT_TRUE(job) << job.error().text;
    EXPECT_EQ((*job).self, NodeId{2});
    EXPECT_EQ((*job).nodes, 4u);
    EXPECT_EQ((*job).threads_per_node, 3u);
    EXPECT_EQ((*job).control_fd, ends_[0]);
    EXPECT_EQ((*job).job_key, 0xffu);
    EXPECT_EQ(::fcntl(ends_[0], F_GETFD), FD_CLOEXEC);
    ControlPacket hello;
    ASSERT_EQ(receive_packet(ends_[1], hello, false), Transfer::done);
    EXPECT_EQ(hello.header.kind, ControlKind::attached);
    EXPECT_EQ(hello.header.rank, 2u);
}

TEST_F(JobInfoTest, WithoutALauncherIsOneNode) {
    ::unsetenv("HIROBA_JOB_RANK");
    const auto job = read_job_info();
    ASSERT_TRUE(job);
    EXPECT_EQ((*job).nodes, 1u);
    EXPECT_EQ((*job).control_fd, -1);
}

TEST_F(JobInfoTest, RefusesWhatIsNoNumberOrNoRankAndNamesIt) {
    const std::pair<const char*, const char*> wrong[] = {
        {"HIROBA_JOB_RANK", "4"},
        {"HIROBA_JOB_RANK", "-1"},
        {"HIROBA_JOB_RANK", "2x"},
        {"HIROBA_JOB_NODES", ""},
        {"HIROBA_JOB_THREADS", "9999999999999999999999"},
        {"HIROBA_JOB_KEY", "key"}};
    for (const auto& [name, value] : wrong) {
        const std::string before = ::getenv(name);
        ::setenv(name, value, 1);
        const auto job = read_job_info();
        ASSERT_FALSE(job) << name << "=" << value;
        EXPECT_EQ(job.error().kind, ErrorKind::usage);
        EXPECT_NE(job.error().text.find(std::string(name) + "=" + value), std::string::npos);
        ::setenv(name, before.c_str(), 1);
    }
    ::unsetenv("HIROBA_JOB_NODES");
    EXPECT_FALSE(read_job_info());
}

TEST_F(JobInfoTest, AClosedChannelIsAnError) {
    ::setenv("HIROBA_JOB_CONTROL_FD", "1000000", 1);
    const auto job = read_job_info();
    ASSERT_FALSE(job);
    EXPECT_EQ(job.error().kind, ErrorKind::peer_lost);
}

std::vector<std::string> restored(std::vector<std::string> entries) {
    std::vector<char*> environment;
    for (std::string& entry : entries) environment.push_back(entry.data());
    environment.push_back(nullptr);
    restore_user_environment(environment.data());
    std::vector<std::string> left;
    for (char** entry = environment.data(); *entry; ++entry) left.emplace_back(*entry);
    return left;
}

using Entries = std::vector<std::string>;

TEST(UserEnvironment, LosesWhatTheLauncherPutInAndRegainsWhatItReplaced) {
    EXPECT_EQ(restored({"HIROBA_JOB_RANK=0001", "HIROBA_JOB_SAVED_LD_PRELOAD=mine.so",
                        "LD_PRELOAD=/lib/libhiroba.so:mine.so", "LD_BIND_NOW=1", "A=1",
                        "GLIBC_TUNABLES=glibc.pthread.rseq=0", "HIROBA_STATS=1"}),
              (Entries{"LD_PRELOAD=mine.so", "A=1", "HIROBA_STATS=1"}));
}

TEST(UserEnvironment, IsLeftAloneWithoutALauncher) {
    const Entries own = {"LD_PRELOAD=mine.so", "LD_BIND_NOW=1", "GLIBC_TUNABLES=x"};
    EXPECT_EQ(restored(own), own);
}

}  // namespace
}  // namespace hiroba::net
