// SPDX-License-Identifier: BSD-3-Clause
// Role: which node has a unit of Fortran open that the program has numbered.
#pragma once

#include <optional>

#include "base/ids.hpp"

namespace hiroba::abi {

/// Another node than 0 that has opened `unit`, as far as this thread's synchronization tells.
/// Thread: of the program.
std::optional<NodeId> node_with_unit(long unit) noexcept;

}  // namespace hiroba::abi
