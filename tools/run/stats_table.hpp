// SPDX-License-Identifier: BSD-3-Clause
// Role: the table of counters at the end of a job (HIROBA_STATS): a row each, a column a node.
#pragma once

#include <string>

#include "tools/run/control_server.hpp"

namespace hiroba::tools {

/// The table, ending in a newline; a node that reported nothing has "-". Empty when none reported.
/// Rows come in the order in which they were first reported; the last column is the sum.
std::string stats_table(const ControlServer& control, std::uint32_t nodes);

}  // namespace hiroba::tools
