// SPDX-License-Identifier: BSD-3-Clause
// Role: what the program wants done on SIGBUS and SIGSEGV that are not hiroba's business.
// Invariant: the program sees what it would see without hiroba: its handler, or death by the
// signal with a true core. The kernel's own actions stay ours.
#pragma once

#include <signal.h>
#include <ucontext.h>

namespace hiroba::dsm {

/// Changes the action the kernel knows. `old` may be nullptr. Never the interposed sigaction.
/// The kernel's action itself. Its handler returns by code of ours, so that a process whose system
/// calls are examined (abi/libc/system_call_trap.hpp) pays nothing for faults.
void set_kernel_action(int signal, const struct sigaction& action, struct sigaction* old) noexcept;

/// Keeps what the kernel had as the program's action, unless the program has set one since.
void adopt_program_action(int signal, const struct sigaction& action) noexcept;

enum class Verdict {
    lives,  ///< the program's handler has run, or the signal is ignored
    dies,   ///< the process ends when the calling signal handler returns
};

/// Passes a signal on: runs the program's handler, or arranges that the process dies by the signal
/// when the calling signal handler returns, the core file showing the interrupted code.
Verdict pass_to_program(int signal, const siginfo_t& info, ucontext_t& context) noexcept;

}  // namespace hiroba::dsm
