// SPDX-License-Identifier: BSD-3-Clause
// Role: which hosts a job uses and which ranks run where, from the words of `--hosts`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace hiroba::tools {

/// A host of the job and the ranks it carries: first_rank, first_rank + 1, ...
struct HostPlan {
    std::string name;  ///< as the user wrote it; for the command that reaches it
    std::uint32_t first_rank = 0;
    std::uint32_t nodes = 0;
    /// Processors of each node, as cpu_list() writes them; empty: its starter's.
    std::vector<std::string> node_cpus = {};
    std::string hiroba = {};   ///< path of this command there; empty: as here
    std::string program = {};  ///< path of the program there; empty: as it was named
};

/// Reads "a,b:2,c": a host carries one node, or as many as stand behind its colon; [::1]:2 for a
/// numeric IPv6 address. `nodes` ranks fill the hosts in this order; 0: as many as there are
/// places. Hosts that get none are left out.
/// Usage errors: an empty or impossible name, a host named twice, a count that is no number from 1
/// to nodes_max, more nodes than places or than nodes_max.
Result<std::vector<HostPlan>> parse_hosts(const std::string& words, std::uint32_t nodes);

}  // namespace hiroba::tools
