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

namespace hiroba::net::sim {

class SimJob {
public:
    SimJob(FiberStacks& stacks, std::uint32_t nodes, const SchedulerOptions& scheduling,
           const NetworkOptions& wire);

    Scheduler& scheduler() noexcept { return scheduler_; }
    Network& network() noexcept { return network_; }
    std::uint32_t nodes() const noexcept { return nodes_; }

    /// Runs body(node) as the first thread of every node until all threads have ended.
    Scheduler::Outcome run(const std::function<void(NodeId)>& body);

    // --- by the nodes' threads -------------------------------------------------------------------

    /// `mine` of each node in rank order, once every node has come.
    ControlChannel::Gathered gather(NodeId self, Bytes mine);
    ProviderSetup setup(NodeId self, std::uint64_t job_key = 7);
    /// Not connected yet.
    std::unique_ptr<Endpoint> open(NodeId self, std::uint64_t job_key = 7);

private:
    std::uint32_t nodes_;
    Scheduler scheduler_;
    Network network_;
    ControlChannel::Gathered coming_;
    std::shared_ptr<const ControlChannel::Gathered> last_;
    std::uint32_t come_ = 0;
    std::uint64_t round_ = 0;
    std::vector<Fiber*> waiting_;
};

/// For messages.
const char* outcome_name(Scheduler::Outcome outcome) noexcept;

}  // namespace hiroba::net::sim
