// SPDX-License-Identifier: BSD-3-Clause
// Role: installing the SIGBUS and SIGSEGV handlers, for the two files that make up the fault path.
#pragma once

#include <cstdint>

namespace hiroba::dsm {

/// Makes the kernel call us on SIGBUS and SIGSEGV; does nothing when it does already.
void install_fault_handlers() noexcept;

/// Sets the function that says more of an access to no memory of the job, which ends the program.
/// It runs in the faulting thread, on its alternate stack, once the death is decided. One per
/// process.
void explain_deaths(void (*explain)(std::uintptr_t address, bool write) noexcept) noexcept;

/// Sets the function that maps what another node has mapped for all, at an address where nothing is
/// mapped here. It runs in the faulting thread, on its alternate stack, before any target is asked,
/// and may itself fault on global memory. True: the access is made again. One per process.
void map_missing_by(bool (*map)(std::uintptr_t address) noexcept) noexcept;

/// Sets the function that knows which accesses to attached memory the program has forbidden itself:
/// they are a SIGSEGV of its own, no target is asked. It is asked where a page is there and the
/// kernel has refused, in the faulting thread, on its alternate stack, and may itself fault on
/// global memory. One per process.
void forbid_accesses(bool (*is_forbidden)(std::uintptr_t address, bool write) noexcept) noexcept;

/// Sets the function that makes attached memory executable here where another node has made it so.
/// It is asked of a fetch that the kernel has refused, in the faulting thread, on its alternate
/// stack, and may itself fault on global memory. False: it is data. One per process.
void find_code_by(bool (*find)(std::uintptr_t address) noexcept) noexcept;

}  // namespace hiroba::dsm
