// SPDX-License-Identifier: BSD-3-Clause
// Role: which thread runs main.
// Invariant: set once, before the program's first instruction.
#pragma once

namespace hiroba::abi {

/// Remembers the caller as the thread whose pthread_exit() leaves the rest of the job running.
void become_main_thread() noexcept;

}  // namespace hiroba::abi
