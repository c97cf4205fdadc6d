// SPDX-License-Identifier: BSD-3-Clause
// Role: Syscall User Dispatch: system calls that libc and other libraries make inside themselves
// reach perform_system_call() as well.
// Invariant: only threads that run the program are examined; code of this library never is.
#pragma once

#include <signal.h>

namespace hiroba::abi {

/// Decides by HIROBA_SYSTEM_CALLS and by trying whether calls are examined, and installs the
/// handler. At take-over, on several nodes, before examine_this_thread().
void prepare_system_call_trap() noexcept;

/// From here on the calling thread's system calls are examined; nothing where they are not to be.
/// Children of fork() and new threads begin unexamined.
void examine_this_thread() noexcept;

/// Whether this job examines them. Async-signal-safe.
bool system_calls_are_examined() noexcept;

/// The program's own action for SIGSYS, which serves every SIGSYS that is not ours.
void set_program_sigsys_action(const struct sigaction* action, struct sigaction* old) noexcept;

}  // namespace hiroba::abi
