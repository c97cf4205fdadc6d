// SPDX-License-Identifier: BSD-3-Clause
// Role: a job of simulated nodes that meet again and again in kick barriers.
#pragma once

#include <cstdint>
#include <string>

#include "net/kick/kick.hpp"
#include "sim/sim_job.hpp"

namespace hiroba::sim_test {

struct KickBarriers {
    std::uint32_t nodes = 2;
    net::kick::Shape shape = net::kick::Shape::tree;
    std::uint32_t phases = 10;
    std::uint64_t pause_max_ns = 0;  ///< how long a node does something else before it arrives
    net::sim::SchedulerOptions scheduling;
    net::sim::NetworkOptions wire;
};

struct KickBarriersRun {
    std::string fault;           ///< empty: no node passed before all had arrived, and all passed
    std::uint64_t phase_ns = 0;  ///< from one meeting to the next, on average
};

/// Runs it to its end. Equal arguments give equal runs.
KickBarriersRun run_kick_barriers(net::sim::FiberStacks& stacks, const KickBarriers& what);

}  // namespace hiroba::sim_test
