// SPDX-License-Identifier: BSD-3-Clause
// Role: finds where code calls functions of other objects.
// Invariant: reads code, changes nothing. A call through a pointer that the code has put aside is
// not seen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omp/atomic/code_sections.hpp"

namespace hiroba::omp {

struct CallSite {
    std::uintptr_t address = 0;
    std::uintptr_t slot = 0;  ///< where the loader puts the function's address
};

/// Calls and jumps that lead through one of `slots`: directly, or by a stub of the linker's (its
/// PLT), which itself is none. Ascending.
std::vector<CallSite> find_calls(std::span<const CodeSection> sections,
                                 std::span<const std::uintptr_t> slots);

}  // namespace hiroba::omp
