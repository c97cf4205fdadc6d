// SPDX-License-Identifier: BSD-3-Clause
// Role: what `hiroba perf openmp` found, and the forms in which it is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/openmp/side.hpp"

namespace hiroba::tools::perf_parts {

struct OpenmpTable {
    std::string provider;
    std::uint32_t nodes = 0, threads = 0;  ///< threads of each node
    std::uint32_t rounds = 0;
    std::string command;      ///< that takes the same table
    std::vector<Side> sides;  ///< hiroba, libgomp, then others; all have the same rows
};

/// One side's samples of a construct, in microseconds.
struct RowFigures {
    double least = 0, median = 0, p90 = 0;
};
RowFigures figures_of(const Row& row);

/// How often `other` goes into `ours`; 0 where it is too short to be compared.
double times_of(double ours, double other);

void print_openmp_table(const OpenmpTable& table);
/// One object a line.
void print_openmp_json(const OpenmpTable& table);
/// A page of its own, well-formed as XML too: the table, and a bar for each ratio.
std::string openmp_page(const OpenmpTable& table);

}  // namespace hiroba::tools::perf_parts
