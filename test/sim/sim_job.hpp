// SPDX-License-Identifier: BSD-3-Clause
// Role: a job whose nodes are simulated: they meet here as others do through the launcher.
// Invariant: equal arguments give equal runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "net/net.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/sim/network.hpp"
#include "net/provider/sim/scheduler.hpp"

namespace hiroba::sim_test {

class SimJob {
public:
    SimJob(net::sim::FiberStacks& stacks, std::uint32_t nodes,
           const net::sim::SchedulerOptions& scheduling, const net::sim::NetworkOptions& wire);

    net::sim::Scheduler& scheduler() noexcept { return scheduler_; }
    net::sim::Network& network() noexcept { return network_; }
    std::uint32_t nodes() const noexcept { return nodes_; }

    /// Runs body(node) as the first thread of every node until all threads have ended.
    net::sim::Scheduler::Outcome run(const std::function<void(NodeId)>& body);

    // --- by the nodes' threads -------------------------------------------------------------------

    /// `mine` of each node in rank order, once every node has come.
    net::ControlChannel::Gathered gather(NodeId self, Bytes mine);
    net::ProviderSetup setup(NodeId self, std::uint64_t job_key = 7);
    /// Not connected yet.
    std::unique_ptr<net::Endpoint> open(NodeId self, std::uint64_t job_key = 7);

private:
    std::uint32_t nodes_;
    net::sim::Scheduler scheduler_;
    net::sim::Network network_;
    net::ControlChannel::Gathered coming_;
    std::shared_ptr<const net::ControlChannel::Gathered> last_;
    std::uint32_t come_ = 0;
    std::uint64_t round_ = 0;
    std::vector<net::sim::Fiber*> waiting_;
};

/// For messages of tests.
const char* outcome_name(net::sim::Scheduler::Outcome outcome) noexcept;

}  // namespace hiroba::sim_test
