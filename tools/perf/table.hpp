// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba perf all` and `--sizes`: one job after the other, a row of a table each.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/perf/perf.hpp"

namespace hiroba::tools::perf_parts {

/// Whether `options` ask for more than one measurement.
bool is_table(const PerfOptions& options);

/// What each row measures; every one's options are right (make_perf_plan). Of `all`, the tests that
/// have a peer's equal where peers are asked for and that --hosts has nodes enough for, sizes that
/// a test takes, and --threads, --change and --home where a test has them. Usage errors name the
/// option.
Result<std::vector<PerfOptions>> rows_of(const PerfOptions& options);

/// The command line that measures `options` alone, and prints one object.
std::vector<std::string> words_of(const PerfOptions& options);

/// How long such a command may take, in seconds: what it measures for, and starts.
std::uint32_t seconds_max(const PerfOptions& options);

/// Measures row after row and prints each as it comes.
/// @return the exit status: that of the first row that failed; the others are measured all the same
int measure_table(const std::vector<PerfOptions>& rows, bool json);

}  // namespace hiroba::tools::perf_parts
