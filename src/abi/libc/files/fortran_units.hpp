// SPDX-License-Identifier: BSD-3-Clause
// Role: units of Fortran for all nodes: on which node a unit is, and statements on those of another
// node. libgfortran's table of units is each node's own.
// Invariant: a statement is carried out whole by the node that has its unit. Its parameter block
// and what is read and written lie in global memory, and are handed over and back with each call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"

namespace hiroba::abi {

struct CallArguments;

/// In the middle of how many READ and WRITE a thread is, and how many of them are of unit 6. A
/// function of their lists may have a region, or end the program.
struct UnitsHere {
    std::uint32_t locked = 0, locked_output = 0;
};
/// Thread: any.
UnitsHere units_of_this_thread() noexcept;
/// Whether some thread waits, or may wait, for what a READ of this node is to get. Thread: any.
bool is_read_under_way() noexcept;

/// A call of libgfortran for another node (RemoteFiles): words[0] is its row, words[1] its first
/// argument, and so on; those behind the fifth lie in the data.
enum class UnitCall : std::int64_t { call = (1 << 23) + 1 };
std::int64_t call_unit_here(const CallArguments& words, std::byte* data) noexcept;

}  // namespace hiroba::abi
