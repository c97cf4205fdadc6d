// SPDX-License-Identifier: BSD-3-Clause
// Role: the processes of a job: starting them and killing them.
// Invariant: a node is signalled only until it has been waited for, so its process number is its
// own. Every node that was started here dies with the launcher (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "tools/run/environment.hpp"
#include "tools/run/node_set.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/signals.hpp"

namespace hiroba::tools {

struct NodeProcess {
    pid_t pid = -1;
    int socket = -1;     ///< the launcher's end of the control channel
    bool alive = false;  ///< started and not yet waited for
    int watch = -1;      ///< a pidfd where it is another's child, and ends with its channel too
};

/// The random key of a new job. An internal error when the kernel gives none.
Result<JobIdentity> draw_job_key();

/// Starts the plan's nodes on this host; when one cannot be started none is left. The descriptor in
/// `job` is chosen here.
///
/// Rank 0 stays in the launcher's process group and has its stdin, so that the terminal treats it
/// as the bare program; every other node is a group of its own, which no terminal signal reaches.
/// Under an agent rank 0 is one too: the agent's group is orphaned, so the kernel would not stop
/// it.
Result<std::vector<NodeProcess>> start_nodes(const RunPlan& plan, JobIdentity job,
                                             const SignalWatch& signals);

/// Sends a signal to a node that is alive.
void signal_node(const NodeProcess& node, int number);
/// Sends SIGKILL to every node alive.
void kill_nodes(const std::vector<NodeProcess>& nodes);

/// Waits for every child that has ended or was stopped, without blocking; nodes that ended are
/// alive no more. The first of `nodes` is `first_rank`.
std::vector<NodeEvent> reap_nodes(std::vector<NodeProcess>& nodes, std::uint32_t first_rank = 0);

}  // namespace hiroba::tools
