// SPDX-License-Identifier: BSD-3-Clause
// Role: wait4() and waitid() for children that threads of any node have started.
// Invariant: a child is told of once. A wait for one child is a wait in its parent's kernel; one
// for any of several looks at each node by turns, more and more rarely.
#pragma once

#include "abi/libc/calls/system_calls.hpp"

namespace hiroba::abi {

/// @param number  SYS_wait4 or SYS_waitid, by the program
/// @return as the kernel's
long wait_for_child(long number, const CallArguments& arguments) noexcept;

}  // namespace hiroba::abi
