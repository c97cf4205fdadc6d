// SPDX-License-Identifier: BSD-3-Clause
// Role: prints how much memory one node's communication takes in jobs of 2, 16 and 1024 simulated
// nodes of which each talks to one other, and fails when a peer never talked to costs more than 64
// bytes.
#include <malloc.h>

#include <cstdio>
#include <cstring>

#include "gas/gas.hpp"
#include "sim/sim_job.hpp"

namespace {

using hiroba::NodeId;

std::size_t heap_bytes() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/// Bytes of heap that each of `nodes` connected nodes has after it talked to its neighbour.
double bytes_per_node(hiroba::net::sim::FiberStacks& stacks, std::uint32_t nodes) {
    hiroba::sim_test::SimJob job{stacks, nodes, {}, {}};
    std::size_t before = 0, after = 0;
    std::uint32_t right = 0;
    const auto outcome = job.run([&](NodeId self) {
        job.gather(self, {});
        if (self == NodeId{0}) before = heap_bytes();
        job.gather(self, {});
        const auto endpoint = job.open(self);
        auto segment = *hiroba::gas::Segment::allocate(*endpoint, 4096);
        bool told = false;
        endpoint->on(
            hiroba::net::MessageKind::test,
            [](void* told, NodeId, hiroba::Bytes) noexcept { *static_cast<bool*>(told) = true; },
            &told);
        if (!endpoint->connect()) return;
        segment.attach();
        const NodeId next{(self.value + 1) % nodes};
        segment.store({next, 0}, self.value + 1);
        endpoint->send(next, hiroba::net::MessageKind::test, hiroba::net::Urgency::when_polled, {});
        endpoint->wait_until([&] { return told; });
        right += segment.load({self, 0}) == (self.value + nodes - 1) % nodes + 1;
        // What is under way has arrived and been acknowledged by then.
        job.scheduler().park(job.scheduler().time_ns() + 50'000'000);
        job.gather(self, {});
        if (self == NodeId{0}) after = heap_bytes();
        job.gather(self, {});
    });
    if (outcome != hiroba::net::sim::Scheduler::Outcome::ended || right != nodes) {
        std::printf("%u nodes: %s, %u right\n", nodes, hiroba::sim_test::outcome_name(outcome),
                    right);
        return -1;
    }
    return static_cast<double>(after - before) / nodes;
}

}  // namespace

int main() {
    constexpr double bytes_per_quiet_peer_max = 64;
    hiroba::net::sim::FiberStacks stacks;
    double two = 0, growth = 0;
    for (const std::uint32_t nodes : {2u, 16u, 1024u}) {
        const double bytes = bytes_per_node(stacks, nodes);
        if (bytes < 0) return 1;
        if (nodes == 2) two = bytes;
        growth = nodes == 2 ? 0 : (bytes - two) / (nodes - 2);
        std::printf("%5u nodes: %8.0f bytes a node; %5.1f for each peer more\n", nodes, bytes,
                    growth);
    }
    return growth <= bytes_per_quiet_peer_max ? 0 : 1;
}
