// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba perf TEST --beside ucx,mpi`: what other libraries take for the same on this
// machine, measured by turns with the test.
#pragma once

#include <vector>

#include "tools/perf/plan.hpp"

namespace hiroba::tools::perf_parts {

/// Whether every peer that `options.beside` names has an equal of `test` for its provider and
/// threads.
bool has_equal(const Test& test, const PerfOptions& options);

/// Runs each row's test and its peers by turns, as often as its --repeat says, and prints the
/// medians: with their spread for one row, else a line each. `rows`: those of rows_of(), not none.
/// @return the exit status: 64 for a peer or test there is no equal of, 78 for one not installed
int measure_beside(const std::vector<PerfOptions>& rows);

}  // namespace hiroba::tools::perf_parts
