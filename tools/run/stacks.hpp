// SPDX-License-Identifier: BSD-3-Clause
// Role: prints what every thread of every node is doing: its stack, and in one word what it waits
// for. For a job that does not move on.
// Invariant: a node is stopped only while it is looked at and goes on unharmed. The launcher may
// trace its nodes because they are its children.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/run/nodes.hpp"

namespace hiroba::tools {

/// What `hiroba stacks` sends with SIGUSR1, so that it is never taken for the program's own signal.
inline constexpr int stacks_request = 0x68697262;

/// Prints the stacks of all nodes alive to stderr; the first of `nodes` is `first_rank`.
void print_stacks(const std::vector<NodeProcess>& nodes, std::uint32_t first_rank = 0);

/// Says in one line in which calls threads of the program wait, and where in it; nothing where one
/// of them sleeps for a time of its own, or reads what somebody types.
void tell_waits(const std::vector<NodeProcess>& nodes, std::uint32_t first_rank = 0);

/// A call on a stack.
struct CallFrame {
    std::uint64_t address = 0;  ///< within the call it is in
    std::string function, file;
};
/// In which call of a library a thread of the program waits.
struct ProgramWait {
    std::string what;           ///< "in read", "for the other nodes at a barrier"
    std::uint64_t address = 0;  ///< of the program's call
};
/// What a thread with these calls, innermost first, waits for; none: it is not the program's, or
/// executes its code.
std::optional<ProgramWait> wait_of(const std::vector<CallFrame>& frames);

/// What a thread whose stack has these functions, innermost first, is waiting for; empty: nothing.
std::string waits_for(const std::vector<std::string>& functions);

/// Whether the program may receive SIGUSR1 by itself: it catches or ignores it, or awaits it with
/// all of its threads blocking it.
bool uses_user_signal(pid_t process);

/// `hiroba stacks [PID]`: asks the launcher with this number, or the only one there is; returns the
/// command's exit status.
int ask_for_stacks(const std::string& process);

}  // namespace hiroba::tools
