// SPDX-License-Identifier: BSD-3-Clause
// Role: what the launcher says of dead nodes reaches the provider; without the setting nobody
// listens.
#include "net/loss_watch.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "net/bootstrap/control_packet.hpp"
#include "net/test_parts/idle_provider.hpp"

namespace hiroba::net {
namespace {

/// Does nothing but remember who was lost.
class Mourner final : public test::IdleProvider {
public:
    Mourner() : IdleProvider({"mourner", 0, true, true, false}) {}
    void peer_lost(NodeId peer) noexcept override { lost.fetch_or(1u << peer.value); }

    std::atomic<std::uint32_t> lost{0};
};

struct Channel {
    Channel() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0); }
    ~Channel() {
        unsetenv("HIROBA_LOSS_GRACE");
        close(ends[0]);
        close(ends[1]);
    }
    JobInfo job() const {
        JobInfo job;
        job.nodes = 4;
        job.control_fd = ends[0];
        return job;
    }
    void tell(ControlKind kind, std::uint32_t rank) const {
        ASSERT_EQ(send_packet(ends[1], {kind, rank, 0}, {}, -1, true), Transfer::done);
    }
    int ends[2];
};

TEST(LossWatch, tells_the_provider_of_each_node_that_died_and_of_nothing_else) {
    const Channel channel;
    setenv("HIROBA_LOSS_GRACE", "100", 1);
    Mourner provider;
    auto watch = LossWatch::start(channel.job(), provider);
    ASSERT_TRUE(watch);
    ASSERT_NE(*watch, nullptr);
    channel.tell(ControlKind::lost, 2);
    channel.tell(ControlKind::lost, 4);  // there is no such node
    channel.tell(ControlKind::passed, 1);
    channel.tell(ControlKind::lost, 0);
    while (provider.lost != 0b101) std::this_thread::yield();  // the test's time limit ends it
    channel.tell(ControlKind::lost, 3);
    (*watch).reset();  // ends although the launcher is there
    EXPECT_EQ(provider.lost & ~0b1000u, 0b101u);
}

TEST(LossWatch, needs_a_grace_and_a_launcher) {
    const Channel channel;
    Mourner provider;
    EXPECT_EQ(*LossWatch::start(channel.job(), provider), nullptr);
    setenv("HIROBA_LOSS_GRACE", "100", 1);
    EXPECT_EQ(*LossWatch::start(JobInfo{}, provider), nullptr);
    setenv("HIROBA_LOSS_GRACE", "soon", 1);
    EXPECT_FALSE(LossWatch::start(channel.job(), provider));
}

}  // namespace
}  // namespace hiroba::net
