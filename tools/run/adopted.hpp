// SPDX-License-Identifier: BSD-3-Clause
// Role: nodes that another launcher has started: they come to the agent of their host, each by its
// keeper (`hiroba join`), and get their end of a control channel.
// Invariant: both sides are processes of one user, and a keeper knows the job's key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/bootstrap/keeper.hpp"
#include "tools/run/nodes.hpp"

namespace hiroba::tools {

/// Waits for the plan's nodes at the socket RunPlan::adopted_at of host `host_index`. An
/// environment error names the ranks that have not come within the time limit.
Result<std::vector<NodeProcess>> adopt_nodes(const RunPlan& plan, const JobIdentity& job,
                                             std::uint32_t host_index);

/// What a node gets.
struct Adoption {
    net::JoinedBody body;
    int control = -1;  ///< the node's end of its channel
};
/// The keeper's side: waits until that socket is there. Environment errors: it does not come within
/// the time limit, or is another user's.
Result<Adoption> be_adopted(const std::string& adopted_at, std::uint32_t host_index,
                            const net::JobKey& key, std::uint32_t rank, int process);

}  // namespace hiroba::tools
