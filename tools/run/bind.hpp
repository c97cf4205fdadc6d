// SPDX-License-Identifier: BSD-3-Clause
// Role: which processors each node of this host may use (hiroba run --bind-to).
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "tools/run/plan.hpp"

namespace hiroba::tools {

/// Sets plan.node_cpus. `how`: "core" gives each node as many cores of its own as it has threads,
/// "numa" a NUMA domain, which nodes may share; "none" or "" leaves them the launcher's processors.
Result<void> bind_nodes(RunPlan& plan, std::string_view how);

}  // namespace hiroba::tools
