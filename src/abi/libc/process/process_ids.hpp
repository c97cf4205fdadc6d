// SPDX-License-Identifier: BSD-3-Clause
// Role: the numbers by which a program knows its process, its parent and its first thread. They are
// the node's own: programs tell nodes apart by them. (show_process_ids() of node 0's on another
// node would hide all but forks from a library that compares them.) Invariant: a number the program
// has from here means, in a call, this node's process, or the thread that runs main or stands for
// it. A child of vfork() has its own.
#pragma once

#include <sys/types.h>

namespace hiroba::abi {

struct ProcessIds {
    pid_t process = 0, parent = 0;
};

/// Node 0's, for the others to show.
ProcessIds own_process_ids() noexcept;
void show_process_ids(const ProcessIds& ids) noexcept;

/// The calling thread runs main, or stands for that on another node.
void become_first_thread() noexcept;

/// What the program is to see for numbers of the kernel's.
pid_t shown_process(pid_t process) noexcept;
pid_t shown_parent(pid_t parent) noexcept;
pid_t shown_thread(pid_t thread) noexcept;

/// A call of the program's: puts numbers of this node where its arguments name those that are
/// shown. Async-signal-safe.
void name_own_process(long number, long* arguments) noexcept;

}  // namespace hiroba::abi
