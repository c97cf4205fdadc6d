// SPDX-License-Identifier: BSD-3-Clause
// Role: what is made sure of on each host before it starts a node.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "tools/machine.hpp"
#include "tools/run/plan.hpp"

namespace hiroba::tools {

/// A whole number from 1 to `max`, or a usage error naming `option`.
Result<std::uint32_t> count_option(const char* option, const std::string& text, std::uint32_t max);

/// Opens /dev/null for those of descriptors 0 to 2 that are closed: they would be given to control
/// channels.
void fill_standard_descriptors();

/// Finds the program and the runtime library of `plan`, and refuses what cannot be taken over.
Result<void> look_up_program(RunPlan& plan);

/// Refuses what `machine` has no room for, and turns address randomization off.
Result<void> check_machine(const RunPlan& plan, const Machine& machine);

}  // namespace hiroba::tools
