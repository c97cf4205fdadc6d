// SPDX-License-Identifier: BSD-3-Clause
// Role: a replay in this process, which can have one only.
#pragma once

#include <cstddef>

#include "tools/predict/replay.hpp"

namespace hiroba::tools {

/// Thrown where a platform has fewer hosts than nodes are wanted.
struct TooFewHosts {
    std::size_t hosts = 0;
};

/// What SimGrid does not like it throws, or it ends the process.
Replayed replay_here(const WorkTable& table, const ReplayMachine& machine);

}  // namespace hiroba::tools
