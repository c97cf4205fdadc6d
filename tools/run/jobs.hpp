// SPDX-License-Identifier: BSD-3-Clause
// Role: jobs that run on this host, for commands that look at one: found by their launchers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace hiroba::tools {

struct RunningJob {
    pid_t launcher = 0;
    std::vector<std::string> words;  ///< of its command line
    std::string folder;              ///< it was started in
    std::string recording;           ///< the file it is recorded in; empty: none

    std::string command() const;
};

/// Jobs of this user's hiroba run and hiroba exec; root sees everybody's.
std::vector<RunningJob> running_jobs();

/// The job of which `process`, a number, is the launcher. Empty: the only one there is, or the only
/// one that was started in this folder.
/// @param command  that is told what to say, as "hiroba stacks PID"
/// @param recorded  whether only jobs count that are being recorded
Result<RunningJob> find_job(const std::string& process, const std::string& command,
                            bool recorded = false);

/// Its nodes on this host: process by rank.
std::map<std::uint32_t, pid_t> nodes_of(const RunningJob& job);

}  // namespace hiroba::tools
