// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba perf openmp`: what each construct of OpenMP costs on nodes of hiroba and with
// libgomp, in turns.
#pragma once

#include "tools/perf/perf.hpp"

namespace hiroba::tools::perf_parts {

/// In place of a test's name.
inline constexpr const char* openmp_rows = "openmp";

/// What `hiroba perf --list` says of it.
inline constexpr const char* openmp_asks =
    "what each construct of OpenMP costs in an unmodified program, each a row; not part of all";
inline constexpr const char* openmp_floor = "libgomp with as many threads, in turns";

/// Measures, and prints a row for each construct; with --list, the names of the rows.
/// @return the exit status: 64 for words that are wrong, 70 for wrong answers
int measure_openmp(const PerfOptions& options);

}  // namespace hiroba::tools::perf_parts
