// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba run --hosts`: the life of a job on several hosts, in order.
#pragma once

#include "tools/run/run.hpp"

namespace hiroba::tools {

/// Runs the job; returns the command's exit status (docs/layers/hosts.md).
int run_on_hosts(const RunOptions& options);

}  // namespace hiroba::tools
