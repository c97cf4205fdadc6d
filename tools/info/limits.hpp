// SPDX-License-Identifier: BSD-3-Clause
// Role: judges the machine's limits for a job of the usual size.
#pragma once

#include <string>
#include <vector>

#include "tools/machine.hpp"

namespace hiroba::tools {

struct LimitVerdict {
    std::string name;
    std::string value;
    bool enough = true;
    std::string advice;  ///< what is needed and the setting to change; empty when enough
};

/// Pure: the verdicts for `nodes` nodes with arenas of `heap_bytes` each.
/// @param pins  the provider pins the memory that is used
std::vector<LimitVerdict> judge_limits(const Machine& machine, std::uint32_t nodes,
                                       std::uint64_t heap_bytes, bool pins);

}  // namespace hiroba::tools
