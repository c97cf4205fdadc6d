// SPDX-License-Identifier: BSD-3-Clause
#include "net/bootstrap/host_link.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace hiroba::net {
namespace {

constexpr wire::HashKey key{11, 12};

/// Two sockets with somebody in between, who sees and may change every byte.
struct Wire {
    Wire() {
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, launcher), 0);
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, agent), 0);
    }
    ~Wire() {
        ::close(launcher[1]);
        ::close(agent[1]);
    }
    static std::vector<char> take(int socket) {
        std::vector<char> bytes(1 << 20);
        const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
        bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return bytes;
    }
    static void put(int socket, const std::vector<char>& bytes) {
        EXPECT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    /// Carries everything both ways until nothing moves.
    void carry() {
        for (bool moved = true; moved;) {
            moved = false;
            for (const auto& [from, to] :
                 {std::pair(launcher[1], agent[1]), std::pair(agent[1], launcher[1])}) {
                const auto bytes = take(from);
                if (!bytes.empty()) put(to, bytes);
                moved = moved || !bytes.empty();
            }
        }
    }
    int launcher[2], agent[2];
};

/// Both ends, which know each other's number.
struct Pair {
    explicit Pair(wire::HashKey agent_key = key)
        : launcher(wire.launcher[0], key), agent(wire.agent[0], agent_key) {
        wire.carry();
        EXPECT_FALSE(launcher.receive());
        EXPECT_FALSE(agent.receive());
        EXPECT_TRUE(launcher.met() && agent.met());
    }
    Wire wire;
    HostLink launcher, agent;
};

std::vector<std::byte> numbered(std::size_t bytes) {
    std::vector<std::byte> body(bytes);
    for (std::size_t i = 0; i < bytes; ++i) body[i] = static_cast<std::byte>(i * 7);
    return body;
}

TEST(HostLink, FramesArriveWholeAndInOrderBothWays) {
    Pair pair;
    const auto small = numbered(3);
    pair.agent.send({HostKind::hello, 4, 5}, small);
    pair.agent.send({HostKind::ended, 6, 7});
    pair.launcher.send({HostKind::go, 0, 0});
    pair.wire.carry();
    const auto hello = pair.launcher.receive();
    ASSERT_TRUE(hello);
    EXPECT_EQ(hello->header.kind, HostKind::hello);
    EXPECT_EQ(hello->header.rank, 4u);
    EXPECT_EQ(hello->header.number, 5u);
    EXPECT_EQ(hello->body, small);
    const auto ended = pair.launcher.receive();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->header.number, 7u);
    EXPECT_FALSE(pair.launcher.receive());
    EXPECT_TRUE(pair.agent.receive());
    EXPECT_TRUE(pair.agent.authentic());
}

TEST(HostLink, TheLargestFrameGoesThroughInPieces) {
    Pair pair;
    pair.agent.send({HostKind::hello, 0, 0});
    const auto large = numbered(HostLink::body_bytes_max);
    pair.agent.send({HostKind::packet, 0, 0}, large);
    std::optional<HostFrame> got;
    for (int round = 0; round < 1000 && !got; ++round) {
        pair.agent.flush();
        pair.wire.carry();
        got = pair.launcher.receive();
        if (got && got->header.kind == HostKind::hello) got.reset();
    }
    ASSERT_TRUE(got);
    EXPECT_EQ(got->body, large);
}

TEST(HostLink, AStrangerIsNotListenedTo) {
    Pair pair(wire::HashKey{11, 13});
    pair.agent.send({HostKind::hello, 0, 0});
    pair.wire.carry();
    EXPECT_FALSE(pair.launcher.receive());
    EXPECT_LT(pair.launcher.fd(), 0);
    EXPECT_NE(pair.launcher.closed_why().find("wrong tag"), std::string::npos);
}

TEST(HostLink, AChangedBitClosesTheConnection) {
    // Every byte of the frame in turn: tag, size, kind, rank, number, body.
    for (std::size_t at = 0; at < 40; ++at) {
        Pair pair;
        pair.agent.send({HostKind::ended, 1, 2}, numbered(8));
        auto bytes = Wire::take(pair.wire.agent[1]);
        ASSERT_EQ(bytes.size(), 40u);
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
        Wire::put(pair.wire.launcher[1], bytes);
        EXPECT_FALSE(pair.launcher.receive()) << at;
    }
}

TEST(HostLink, AFrameCannotBePlayedAgainNorReflected) {
    Pair pair;
    pair.agent.send({HostKind::ended, 1, 2});
    const auto frame = Wire::take(pair.wire.agent[1]);
    Wire::put(pair.wire.launcher[1], frame);
    EXPECT_TRUE(pair.launcher.receive());
    Wire::put(pair.wire.launcher[1], frame);
    EXPECT_FALSE(pair.launcher.receive());
    EXPECT_LT(pair.launcher.fd(), 0);
    Wire::put(pair.wire.agent[1], frame);  // back to its sender
    EXPECT_FALSE(pair.agent.receive());
    EXPECT_LT(pair.agent.fd(), 0);
}

TEST(HostLink, ItsOwnGreetingBackIsRefused) {
    Wire wire;
    HostLink launcher(wire.launcher[0], key);
    Wire::put(wire.launcher[1], Wire::take(wire.launcher[1]));
    EXPECT_FALSE(launcher.receive());
    EXPECT_LT(launcher.fd(), 0);
    ::close(wire.agent[0]);
}

TEST(HostLink, OfAStrangerLittleIsKept) {
    Pair pair(wire::HashKey{11, 13});
    pair.agent.send({HostKind::hello, 0, 0}, numbered(HostLink::first_body_bytes_max + 1));
    pair.wire.carry();
    EXPECT_FALSE(pair.launcher.receive());
    // Told by its length, before there is a whole frame to look at.
    EXPECT_EQ(pair.launcher.closed_why(), "a frame of 1025 bytes came");
}

TEST(HostLink, WhatWasSentBeforeTheEndIsStillReceived) {
    Wire wire;
    HostLink launcher(wire.launcher[0], key);
    {
        HostLink agent(wire.agent[0], key);
        wire.carry();
        EXPECT_FALSE(launcher.receive());
        EXPECT_FALSE(agent.receive());
        agent.send({HostKind::ended, 0, 9});
        wire.carry();
    }
    ::shutdown(wire.launcher[1], SHUT_WR);
    const auto last = launcher.receive();
    ASSERT_TRUE(last);
    EXPECT_EQ(last->header.number, 9u);
    EXPECT_FALSE(launcher.receive());
    EXPECT_EQ(launcher.closed_why(), "the connection was closed");
}

}  // namespace
}  // namespace hiroba::net
