// SPDX-License-Identifier: BSD-3-Clause
// Role: which node has a unit of Fortran open that the program has numbered, and which units the
// calling thread has locked.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.hpp"

namespace hiroba::abi {

/// In the middle of how many READ and WRITE a thread is, and how many of them are of unit 6. A
/// function of their lists may have a region, or end the program.
struct UnitsHere {
    std::uint32_t locked = 0, locked_output = 0;
};
/// Thread: any.
UnitsHere units_of_this_thread() noexcept;

/// Another node than 0 that has opened `unit`, as far as this thread's synchronization tells.
/// Thread: of the program.
std::optional<NodeId> node_with_unit(long unit) noexcept;

}  // namespace hiroba::abi
