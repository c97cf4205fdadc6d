// SPDX-License-Identifier: BSD-3-Clause
// Role: installing the SIGBUS and SIGSEGV handlers, for the two files that make up the fault path.
#pragma once

namespace hiroba::dsm {

/// Makes the kernel call us on SIGBUS and SIGSEGV; does nothing when it does already.
void install_fault_handlers() noexcept;

}  // namespace hiroba::dsm
