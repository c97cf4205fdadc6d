// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba run`: starts a job and stays until it is over.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace hiroba::tools {

/// The words of the command line, unchecked.
struct RunOptions {
    std::string nodes;    ///< may be empty with hosts
    std::string threads;  ///< empty: the cores this job may use, shared out
    std::string bind_to;  ///< core, numa or none; empty: none
    bool spmd = false;
    std::string hosts;     ///< "a,b:2"; empty: those of the allocation, or this host
    std::string hostfile;  ///< a file that names them; empty: none
    std::string ports;     ///< empty: HIROBA_PORTS
    std::string hiroba;    ///< its path on hosts: PATH, or a:PATH,b:PATH; empty: as here
    bool copy = false;     ///< sends hiroba and the program to the hosts
    std::string provider;  ///< empty: HIROBA_PROVIDER
    std::string ssh;       ///< command that runs a command on a host; empty: HIROBA_SSH
    std::string record;    ///< empty: HIROBA_RECORD
    std::string progress;  ///< seconds between two lines; empty: none
    bool core = false;     ///< HIROBA_CORE=memory
    bool verbose = false;
    std::string starter_memory;  ///< empty: HIROBA_ACP_STARTER
    std::vector<std::string> command;
};

/// Comes before everything else: descriptors 0 to 2 are open, settings are valid.
Result<void> prepare_command(const RunOptions& options);

/// Runs the job; returns the command's exit status (docs/layers/launch.md).
int run(const RunOptions& options);

}  // namespace hiroba::tools
