// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba perf TEST --beside ucx,mpi`: what other libraries take for the same on this
// machine, measured by turns with the test.
#pragma once

#include <string>
#include <vector>

#include "tools/perf/plan.hpp"

namespace hiroba::tools::perf_parts {

/// Runs the test and its peers by turns, --repeat times, and prints all medians.
/// @param words  of the whole command line
/// @return the exit status: 64 for a peer or test there is no equal of, 78 for one not installed
int measure_beside(const PerfPlan& plan, const PerfOptions& options,
                   const std::vector<std::string>& words);

}  // namespace hiroba::tools::perf_parts
