// SPDX-License-Identifier: BSD-3-Clause
// Role: what a sigevent asks for, foremost calls of the program's functions "as if in a new
// thread". Invariant: such a function runs in a thread of the program, never in one that libc has
// started by itself, which knows nothing of pages that are elsewhere.
#pragma once

#include <signal.h>

namespace hiroba::abi {

/// Tells the program what `event` asks for: nothing, a signal with `code` (SI_ASYNCIO, ...), or a
/// call of a function in a new thread of the program. On several nodes.
void tell_program(const sigevent& event, int code) noexcept;

}  // namespace hiroba::abi
