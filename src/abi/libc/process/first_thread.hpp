// SPDX-License-Identifier: BSD-3-Clause
// Role: the thread that runs main. The kernel's first thread of a process is not that, so calls
// that name a thread by the process's number, as they name main's alone, would mean another.
#pragma once

#include <sys/types.h>

namespace hiroba::abi {

/// The calling thread runs main. Before the program's other threads.
void become_first_thread() noexcept;

/// A call of the program's: puts the number of the thread that runs main where its arguments name a
/// thread by the number of the process. Async-signal-safe.
void name_first_thread(long number, long* arguments) noexcept;
/// The number by which the kernel knows what the program calls `thread`; and back: the thread that
/// runs main has the number of the process. Async-signal-safe.
pid_t number_for_kernel(pid_t thread) noexcept;
pid_t number_for_program(pid_t thread) noexcept;

}  // namespace hiroba::abi
