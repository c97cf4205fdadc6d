// SPDX-License-Identifier: BSD-3-Clause
// Role: for tests: two nodes of provider udp in one process, and somebody who does not belong
// there.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <future>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "net/provider/udp/udp_provider.hpp"

namespace hiroba::net::udp {

struct Seen final : Arrivals {
    void message(NodeId, MessageKind, Bytes) noexcept override { ++messages; }
    void completed(OpId) noexcept override { ++completions; }
    void failed(OpId, NodeId) noexcept override { ++failures; }
    void silent(NodeId) noexcept override { ++silences; }
    int messages = 0, completions = 0, failures = 0, silences = 0;
};

/// Both ends, met through futures instead of a launcher.
struct Pair {
    /// @param between  port of a relay that each takes the other to be at; 0: none
    explicit Pair(std::uint64_t silence_max_ns = 0, std::uint64_t job_key = 7,
                  std::uint16_t between = 0, const Weather& weather = {},
                  Secrecy secrecy = Secrecy::open) {
        std::promise<std::vector<std::byte>> cards[2];
        std::shared_future<std::vector<std::byte>> met[2] = {cards[0].get_future().share(),
                                                             cards[1].get_future().share()};
        std::future<bool> connected[2];
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
            ProviderSetup setup{
                .self = NodeId{rank}, .nodes = 2, .job_key = job_key, .exchange = {}};
            setup.exchange = [&met, between, rank, mine = &cards[rank]](Bytes card, int) {
                mine->set_value({card.begin(), card.end()});
                ControlChannel::Gathered all;
                for (auto& one : met) all.bytes.push_back(one.get());
                if (between != 0) redirect(all.bytes[1 - rank], between);
                return Result<ControlChannel::Gathered>(std::move(all));
            };
            nodes[rank] = std::make_unique<UdpProvider>(std::move(setup), weather, silence_max_ns,
                                                        datagram_bytes_max, secrecy);
            EXPECT_TRUE(nodes[rank]->allocate(1 << 20));
            connected[rank] = std::async(std::launch::async, [this, rank] {
                return static_cast<bool>(nodes[rank]->connect());
            });
        }
        for (auto& one : connected) EXPECT_TRUE(one.get());
    }
    /// Polls the given ends until `ready()`; false after five seconds of computing, so that a busy
    /// machine, or a process stopped for a while, is no failure.
    template <class Ready>
    bool poll_until(Ready ready, bool near = true, bool far = true) {
        const std::uint64_t end_ns = computed_ns() + 5'000'000'000;
        while (!ready() && computed_ns() < end_ns) {
            if (near) nodes[0]->poll(seen[0], 64);
            if (far) nodes[1]->poll(seen[1], 64);
        }
        return ready();
    }
    /// Processor time of this thread, which never sleeps in poll_until().
    static std::uint64_t computed_ns() {
        timespec time{};
        EXPECT_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
               static_cast<std::uint64_t>(time.tv_nsec);
    }
    static void redirect(std::vector<std::byte>& card, std::uint16_t port) {
        std::memcpy(card.data() + offsetof(wire::DatagramCard, port), &port, sizeof port);
    }
    std::unique_ptr<UdpProvider> nodes[2];
    Seen seen[2];
};

/// A stranger's socket that sends to a node.
struct Stranger {
    explicit Stranger(std::uint16_t port) : fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    }
    ~Stranger() { close(fd); }
    void send(const std::vector<std::byte>& bytes) const {
        EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    }
    int fd;
};

}  // namespace hiroba::net::udp
