// SPDX-License-Identifier: BSD-3-Clause
// Role: the parts that processes of an outer launcher play in a job of ours, once their cards are
// known to all: `hiroba exec` and `hiroba join` play the same.
#pragma once

#include <optional>
#include <vector>

#include "tools/exec/placement.hpp"
#include "tools/hosts/rendezvous.hpp"
#include "tools/run/environment.hpp"
#include "tools/run/run.hpp"

namespace hiroba::tools {

/// What process 0 keeps from before the exchange.
struct Leading {
    JobIdentity job;
    Rendezvous rendezvous;
};

ExecCard card_of_this_process();
/// Draws the job's key and opens the port; `card` tells of both.
Result<Leading> begin_leading(ExecCard& card);

/// Process 0's part: the launcher, and the agent of its own host. Returns the job's status.
/// @param adopted_at  as RunPlan::adopted_at
int lead(const RunOptions& options, Leading leading, const std::vector<ExecCard>& cards,
         Placement placement, const std::string& adopted_at = "");
/// The part of the first process on each other host: the agent.
int follow(const RunOptions& options, const std::vector<ExecCard>& cards,
           const Placement& placement, std::uint32_t process, const std::string& adopted_at = "");

}  // namespace hiroba::tools
