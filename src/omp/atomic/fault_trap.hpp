// SPDX-License-Identifier: BSD-3-Clause
// Role: the SIGTRAP handler for sites too short for a jump: int3 leads to the trampoline.
// Invariant: the table of sites is replaced as a whole and never freed, so that the handler reads
// it without a lock. A trap that is not ours goes to the program's action.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace hiroba::omp {

/// An int3 and where it leads.
struct TrapSite {
    std::uintptr_t address = 0;
    std::uintptr_t trampoline = 0;
};

/// Adds sites and, the first time, installs the handler. Before the int3 are written. One thread
/// at a time. SIGTRAP must stay unblocked in threads that run rewritten code: the kernel kills
/// the process otherwise.
Result<void> add_trap_sites(const std::vector<TrapSite>& sites);

/// Stores the action that the program asked for with sigaction(SIGTRAP, ...) (abi interposes it);
/// both are struct sigaction, both may be null.
void set_program_trap_action(const void* action, void* old) noexcept;

}  // namespace hiroba::omp
