// SPDX-License-Identifier: BSD-3-Clause
// Role: the processes of a job: starting them and killing them.
// Invariant: a node is signalled only until it has been waited for, so its process number is its
// own. Every node dies with the launcher (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/signals.hpp"

namespace hiroba::tools {

struct Node {
    pid_t pid = -1;
    int socket = -1;                  ///< the launcher's end of the control channel
    bool alive = false;               ///< started and not yet waited for
    std::uint64_t stopped_at_ns = 0;  ///< by now_ns(); 0: it runs, or its stop has been reported
};

/// Starts plan.nodes processes; when one cannot be started none is left.
///
/// Rank 0 stays in the launcher's process group and has its stdin, so that the terminal treats it
/// as the bare program; every other node is a group of its own, which no terminal signal reaches.
Result<std::vector<Node>> start_nodes(const RunPlan& plan, const SignalWatch& signals);

/// Sends SIGKILL to every node alive.
void kill_nodes(const std::vector<Node>& nodes);

}  // namespace hiroba::tools
