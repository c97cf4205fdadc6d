// SPDX-License-Identifier: BSD-3-Clause
// Role: what is compared by `hiroba perf openmp`: the program hiroba-perf-openmp as one runtime
// runs it. Invariant: its figures are of runs whose answers were right and in which every process
// took part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/perf/child.hpp"

namespace hiroba::tools::perf_parts {

/// One construct.
struct Row {
    std::string group, name;
    std::uint32_t processes = 0;  ///< the most that ran its bodies in one run
    std::vector<double> us;       ///< samples of all runs
};

struct Side {
    std::string name;  ///< "hiroba", "libgomp", or the path of another hiroba
    std::vector<std::string> words;
    Child::Settings settings;
    std::uint32_t threads = 0, processes = 0;  ///< that its team must have
    std::vector<Row> rows;
};

/// Runs the side's program once and adds its samples. What a run says beside them goes to stderr.
/// @return the exit status: 0; 70 for wrong answers or a team that lacks somebody; 78 if there is
///         no such program; else that of the run. A line has said why.
int run_side(Side& side, std::uint32_t seconds);

/// Adds what one run printed (tools/perf/openmp/program/main.c). The error says what is wrong with
/// it.
/// @param others  receives the lines that are none of the program's
Result<void> take_rows(Side& side, const std::string& output, std::string& others);

/// hiroba-perf-openmp: beside this program where it was built, else where it is installed.
std::string openmp_program();

/// The rows there are whose names contain `only`, without samples.
Result<std::vector<Row>> list_rows(const std::string& only);

}  // namespace hiroba::tools::perf_parts
