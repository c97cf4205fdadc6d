// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba run --hosts`: the life of a job on several hosts, in order.
#pragma once

#include <optional>

#include "tools/hosts/remote_nodes.hpp"
#include "tools/run/run.hpp"

namespace hiroba::tools {

/// Runs the job; returns the command's exit status (docs/layers/hosts.md).
int run_on_hosts(const RunOptions& options);

/// The same of a request that is made, with the signals of this process not yet taken over.
/// @param rendezvous  where the agents come to, if they know it already
int run_request(HostsRequest request, const JobIdentity& job,
                std::optional<Rendezvous> rendezvous = {});

/// Reads the settings and options that are the same however the hosts were found: threads, limits,
/// time limits, the program. Usage errors name the option.
Result<HostsRequest> request_for(const RunOptions& options);

}  // namespace hiroba::tools
