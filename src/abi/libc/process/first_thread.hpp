// SPDX-License-Identifier: BSD-3-Clause
// Role: the numbers of the process and of the thread that runs main. The kernel's first thread of a
// process is not that, so calls that name a thread by the process's number, as they name main's
// alone, would mean another. The program is one process: node 0's number is told on every node, as
// a library that compares it with what it has kept takes another for a fork.
#pragma once

#include <signal.h>
#include <sys/types.h>

namespace hiroba::abi {

/// The calling thread runs main. Before the program's other threads.
void become_first_thread() noexcept;

/// Other nodes, before the program runs: the number of node 0's process.
void learn_program_process(pid_t process) noexcept;

/// A call of the program's: puts the numbers that this node's kernel knows where its arguments name
/// the program's process, or by that number the thread that runs main. Async-signal-safe.
void name_for_kernel(long number, long* arguments) noexcept;
/// The number by which the program knows the process that asks: a child of vfork() keeps its own.
/// Async-signal-safe.
pid_t process_for_program() noexcept;
/// Puts that where a signal names this process as its sender.
void name_sender_for_program(siginfo_t& info) noexcept;
/// The number by which the kernel knows what the program calls `thread`; and back: the thread that
/// runs main has the number of the process. Async-signal-safe.
pid_t number_for_kernel(pid_t thread) noexcept;
pid_t number_for_program(pid_t thread) noexcept;

}  // namespace hiroba::abi
