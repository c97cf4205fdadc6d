// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba perf`: how long communication takes on this machine, beside the least it could.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hiroba::tools {

/// The words of the command line, unchecked.
struct PerfOptions {
    std::string test;
    std::string provider;  ///< empty: as HIROBA_PROVIDER says
    std::string offload;   ///< empty: as HIROBA_OFFLOAD says
    std::string nodes;     ///< empty: the fewest the test takes
    std::string threads = "1";
    std::string executors;  ///< of the command queues; empty: one
    std::string bytes;      ///< empty: the test's own
    std::string repeat = "1";
    std::string milliseconds = "300";
    std::string change;  ///< byte, page or doubles; empty: byte
    std::string home;    ///< here or elsewhere; empty: here
    std::string beside;  ///< peers to measure by turns with the test: ucx, mpi
    std::string sizes;   ///< "A:B" or "A,B,C": a row of a table for each; empty: as `bytes` says
    std::string hosts, hostfile, ssh, ports;  ///< as of `hiroba run`; all empty: this host
    std::string only, html;                   ///< of openmp: names that rows contain; a file
    bool copy = false;                        ///< as of `hiroba run`
    bool json = false;
    bool list = false;
};

/// In place of a test's name: all of them, a row of a table each.
inline constexpr const char* every_test = "all";

/// In place of a test's name, in a rank: prints what it has in memory.
inline constexpr const char* memory_report = "memory-report";

/// Starts the nodes and returns the exit status; in a node, measures.
/// @param words  of the whole command line, for the nodes
int perf(const PerfOptions& options, const std::vector<std::string>& words);

}  // namespace hiroba::tools
