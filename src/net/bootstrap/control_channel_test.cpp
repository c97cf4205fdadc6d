// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

#include "net/bootstrap/control_packet.hpp"
#include "net/bootstrap/job.hpp"

namespace hiroba::net {
namespace {

/// A node's end and the launcher's end of one channel.
struct Channel {
    Channel() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0); }
    ~Channel() {
        for (int end : ends)
            if (end >= 0) ::close(end);
    }
    int node() const { return ends[0]; }
    int launcher() const { return ends[1]; }
    void lose_launcher() {
        ::close(ends[1]);
        ends[1] = -1;
    }
    JobInfo job(std::uint32_t nodes) const { return {NodeId{1}, nodes, 1, ends[0], 7}; }
    int ends[2];
};

Bytes bytes_of(const std::array<char, 4>& text) { return std::as_bytes(std::span(text)); }
constexpr std::array<char, 4> word = {'w', 'o', 'r', 'd'};

TEST(ControlChannel, ANodeAloneGathersItsOwnPartAndADuplicateOfItsDescriptor) {
    ControlChannel alone{JobInfo{}};
    const int fd = ::memfd_create("test", MFD_CLOEXEC);
    auto all = alone.all_gather(bytes_of(word), fd);
    ASSERT_TRUE(all);
    ASSERT_EQ((*all).bytes.size(), 1u);
    EXPECT_EQ(std::memcmp((*all).bytes[0].data(), word.data(), word.size()), 0);
    ASSERT_EQ((*all).fds.size(), 1u);
    EXPECT_NE((*all).fds[0], fd);
    EXPECT_GE(::fcntl((*all).fds[0], F_GETFD), 0);
    EXPECT_TRUE(alone.barrier());
    ::close((*all).fds[0]);
    ::close(fd);
}

TEST(ControlChannel, AGatherBeyondTheLimitIsRefusedBeforeAnythingIsSent) {
    Channel channel;
    ControlChannel control{channel.job(2)};
    const std::vector<std::byte> large(ControlChannel::gather_bytes_max + 1);
    const auto refused = control.all_gather(large, -1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::refused);
    ControlPacket packet;
    EXPECT_EQ(receive_packet(channel.launcher(), packet, false), Transfer::again);
}

TEST(ControlChannel, AGatherReturnsEveryNodesPartInRankOrder) {
    Channel channel;
    const int file = ::memfd_create("test", MFD_CLOEXEC);
    for (std::uint32_t rank = 0; rank < 2; ++rank)
        ASSERT_EQ(send_packet(channel.launcher(), {ControlKind::gathered, rank, 0},
                              bytes_of(word).first(rank + 1), rank == 0 ? file : -1, false),
                  Transfer::done);
    ControlChannel control{channel.job(2)};
    auto all = control.all_gather(bytes_of(word), -1);
    ASSERT_TRUE(all);
    EXPECT_EQ((*all).bytes[0].size(), 1u);
    EXPECT_EQ((*all).bytes[1].size(), 2u);
    EXPECT_EQ(::fcntl((*all).fds[0], F_GETFD), FD_CLOEXEC);
    EXPECT_EQ((*all).fds[1], -1);
    ControlPacket asked;
    ASSERT_EQ(receive_packet(channel.launcher(), asked, false), Transfer::done);
    EXPECT_EQ(asked.header.kind, ControlKind::gather);
    EXPECT_EQ(asked.header.rank, 1u);
    ::close((*all).fds[0]);
    ::close(file);
}

TEST(ControlChannel, ALostLauncherIsAnErrorAndNeitherAHangNorASignal) {
    Channel channel;
    channel.lose_launcher();
    ControlChannel control{channel.job(2)};
    const auto gathered = control.all_gather(bytes_of(word), -1);
    ASSERT_FALSE(gathered);
    EXPECT_EQ(gathered.error().kind, ErrorKind::peer_lost);
    const auto passed = control.barrier();
    ASSERT_FALSE(passed);
    EXPECT_EQ(passed.error().kind, ErrorKind::peer_lost);
    control.report_race(1, 2, NodeId{0}, NodeId{1});
    control.report_participation(3, 0);
}

TEST(ControlChannel, ManyCountersArriveWhole) {
    Channel channel;
    ControlChannel control{channel.job(2)};
    std::vector<NamedCount> counts(2000);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = {"count", i};
    control.report_counts(counts.data(), counts.size());
    std::vector<NamedCount> seen;
    ControlPacket packet;
    while (receive_packet(channel.launcher(), packet, false) == Transfer::done) {
        EXPECT_EQ(packet.header.kind, ControlKind::counts);
        const std::size_t at = seen.size();
        seen.resize(at + packet.body.size() / sizeof(NamedCount));
        std::memcpy(seen.data() + at, packet.body.data(), packet.body.size());
    }
    ASSERT_EQ(seen.size(), counts.size());
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].value, i);
}

TEST(ControlPacket, WhatIsTooShortOrTooLongIsMalformedAndLeavesTheNextOneWhole) {
    Channel channel;
    const std::vector<char> large(packet_body_max + sizeof(ControlHeader) + 1);
    ASSERT_EQ(::send(channel.node(), "short", 5, 0), 5);
    ASSERT_EQ(::send(channel.node(), large.data(), large.size(), 0),
              static_cast<ssize_t>(large.size()));
    send_packet(channel.node(), {ControlKind::barrier, 3, 0}, {}, -1, true);
    ControlPacket packet;
    EXPECT_EQ(receive_packet(channel.launcher(), packet, false), Transfer::malformed);
    EXPECT_EQ(receive_packet(channel.launcher(), packet, false), Transfer::malformed);
    ASSERT_EQ(receive_packet(channel.launcher(), packet, false), Transfer::done);
    EXPECT_EQ(packet.header.rank, 3u);
    EXPECT_TRUE(packet.body.empty());
}

TEST(ControlPacket, AFullChannelSaysAgain) {
    Channel channel;
    const std::vector<std::byte> body(packet_body_max);
    Transfer transfer = Transfer::done;
    for (int i = 0; i < 1000 && transfer == Transfer::done; ++i)
        transfer = send_packet(channel.launcher(), {ControlKind::passed, 0, 0}, body, -1, false);
    EXPECT_EQ(transfer, Transfer::again);
}

}  // namespace
}  // namespace hiroba::net
