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
/// calls are examined (abi/libc/calls/system_call_trap.hpp) pays nothing for faults.
void set_kernel_action(int signal, const struct sigaction& action, struct sigaction* old) noexcept;

/// Keeps what the kernel had as the program's action, unless the program has set one since.
void adopt_program_action(int signal, const struct sigaction& action) noexcept;

enum class Verdict {
    lives,      ///< the program's handler has run, or the signal is ignored
    dies,       ///< the process ends when the calling signal handler returns
    dies_told,  ///< and the DeathTeller has told all of this death
};

/// Passes a signal on: runs the program's handler, or arranges that the process dies by the signal
/// when the calling signal handler returns, the core file showing the interrupted code.
Verdict pass_to_program(int signal, const siginfo_t& info, ucontext_t& context) noexcept;

/// The second of these, for a caller that has decided on the death: by any signal whose default
/// action ends the process. All signals but the faults are blocked.
Verdict die_on_return(int signal, const siginfo_t& info, ucontext_t& context) noexcept;

/// Tells of a death, while the thread's registers and stack are as they were; false: it could not.
using DeathTeller = bool (*)(int signal, const siginfo_t& info, const ucontext_t& context) noexcept;
/// Called in the dying thread, on its alternate stack, once the death is decided. One for the
/// process.
void tell_of_deaths(DeathTeller teller) noexcept;

}  // namespace hiroba::dsm
