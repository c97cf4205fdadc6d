// SPDX-License-Identifier: BSD-3-Clause
// Role: the table of counters at the end of a job (HIROBA_STATS): a row each, a column a node.
#pragma once

#include <string>
#include <vector>

#include "tools/run/control_server.hpp"
#include "tools/run/symbol.hpp"

namespace hiroba::tools {

/// The table, ending in a newline; a node that reported nothing has "-". Empty when none reported.
/// Rows come in the order in which they were first reported; the last column is the sum.
std::string stats_table(const ControlServer& control, std::uint32_t nodes);

/// A table of the places of the program where threads synchronize, all nodes together, the most
/// expensive first: how often, the time, and where it went. Empty when none was reported.
std::string places_table(const ControlServer& control, std::uint32_t nodes,
                         const std::vector<LoadedFile>& files);

/// Everything, by node and by place, as one JSON object: {"nodes": [{"rank", "counters": {name:
/// value}, "places": [{"place", "address", "counters"}]}]}. Times are in microseconds.
std::string stats_json(const ControlServer& control, std::uint32_t nodes,
                       const std::vector<LoadedFile>& files);

}  // namespace hiroba::tools
