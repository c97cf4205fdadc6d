// SPDX-License-Identifier: BSD-3-Clause
// Role: signal sets and actions as the program may have them.
// Invariant: SIGSEGV, SIGBUS and SIGTRAP stay unblocked and ours on several nodes.
#pragma once

#include <signal.h>

namespace hiroba::abi {

/// `set` without the signals the runtime needs; nullptr for nullptr. `room` holds the result.
const sigset_t* without_faults(const sigset_t* set, sigset_t& room) noexcept;

/// Whether a handler of the program waits until its thread leaves the runtime, be it this one or,
/// of what was sent to the process, any. Any thread.
bool is_signal_deferred() noexcept;
/// Stays out of the runtime for long enough that the handler runs. For a thread that would wait in
/// the runtime for what that handler does.
void let_signals_in() noexcept;
/// False: its handler is the program's, and ends what waits in the kernel (no SA_RESTART).
bool handler_restarts_calls(int number) noexcept;
/// As the program's own sigaction() on this node would. Nothing of it travels.
void set_program_signal(int number, const struct sigaction& action) noexcept;

/// Relays what was set before the take-over: by constructors of libraries, and by libc for a
/// program built with -pg.
void adopt_signal_actions() noexcept;

/// Whether a system call is for perform_signal_action(): one of the program's, or that libc makes
/// inside itself for sigset(), profil() and others.
bool sets_action_of_program(long number, const long* words) noexcept;
/// As sigaction(). @return 0 or a negated error number
long perform_signal_action(const long* words) noexcept;

}  // namespace hiroba::abi
