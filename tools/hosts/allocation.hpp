// SPDX-License-Identifier: BSD-3-Clause
// Role: the hosts that a batch system or a file gives a job, as the words of `--hosts`.
// Invariant: pure, apart from the reading of one file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace hiroba::tools {

/// Hosts that were given, and what reaches them.
struct Allocation {
    std::string hosts;    ///< as `--hosts` has them: "a:2,b"
    std::string command;  ///< that runs an agent there; empty: as without an allocation
    std::string source;   ///< "SLURM_JOB_NODELIST", for lines
};

/// Reads a file of hosts: a line names one host, with `slots=N` (Open MPI) or `:N` (MPICH) for the
/// number of its nodes; a host that stands in several lines has that many more. # begins a comment.
/// Usage errors name the file and the line.
Result<std::string> read_hostfile(const std::string& path);

/// "node[01-03,7],login" -> the names, each by itself. Usage error when the text is no such list.
Result<std::vector<std::string>> expand_host_list(const std::string& text);

/// What the batch system of this process has given: Slurm (SLURM_JOB_NODELIST,
/// SLURM_TASKS_PER_NODE; hosts are reached by srun) or PBS (PBS_NODEFILE). Nothing outside one.
/// @param get  an environment variable or nullptr
Result<std::optional<Allocation>> find_allocation(const char* (*get)(const char*));

}  // namespace hiroba::tools
