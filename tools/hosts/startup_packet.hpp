// SPDX-License-Identifier: BSD-3-Clause
// Role: what the launcher writes to the standard input of the command that starts an agent: all the
// agent has to know, the job's key among it. So secrets travel through the command (ssh encrypts
// it), never over a command line or an open connection.
// Invariant: the first line can be read by every build: it says which build wrote it and how long
// the rest is. What follows the start-up packet is the program's standard input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/run/environment.hpp"
#include "tools/run/plan.hpp"

namespace hiroba::tools {

struct StartupPacket {
    std::string host;  ///< as the user named it
    /// Name of a link to the runtime's folder that every host is to make, since nodes compare where
    /// their libraries are; empty: it lies at the same path everywhere.
    std::string runtime_folder;
    std::uint32_t host_index = 0;      ///< its position among the job's hosts
    JobIdentity job;                   ///< control_fd is each host's own
    RunPlan plan;                      ///< of this host; program and library are looked up there
    std::vector<std::string> callers;  ///< numeric addresses of the launcher, best first
    std::uint16_t port = 0;            ///< where it listens
    std::string directory;             ///< working directory of the nodes
    std::uint32_t umask = 0;
    std::uint64_t stack_limit = 0;  ///< RLIMIT_STACK, soft
    std::vector<std::string> environment;
};

/// Fills in what the nodes inherit from this process: directory, umask, stack limit, environment.
void describe_this_process(StartupPacket& packet);

/// The start-up packet's bytes, first line included.
std::string write_startup_packet(const StartupPacket& packet);

/// Reads a start-up packet from `fd`, and not a byte beyond it; waits at most `limit_ms` for each
/// part. Environment errors: no start-up packet, cut, from another build than this (named with
/// both).
Result<StartupPacket> read_startup_packet(int fd, int limit_ms);

/// The build id of this executable, as hexadecimal digits; "none" when it has none.
std::string own_build_id();

}  // namespace hiroba::tools
