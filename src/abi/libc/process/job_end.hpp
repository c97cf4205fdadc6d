// SPDX-License-Identifier: BSD-3-Clause
// Role: the ways a process of the job ends, and what each must tell the others.
// Invariant: node 0 ends the job; another node can only ask for it. Children of fork() are no part
// of the job: nothing here acts in them.
#pragma once

#include "net/net.hpp"

namespace hiroba::abi {

/// Whether this is the node's process and not a child of it (fork, vfork). Async-signal-safe.
bool is_node_process() noexcept;

/// Arranges that end_program() runs after everything the program has registered. At take-over,
/// on every node: it also makes this process the one whose exit counts.
void register_end_of_program() noexcept;

/// Node 0: sends the other nodes home (out of a parallel region: asks the launcher to end the job
/// with `status`) and reports. Once; later calls do nothing.
void end_program(int status) noexcept;

/// What exit() of the program does, in its name: on another node than 0 it asks node 0.
[[noreturn]] void exit_as_program(int status) noexcept;

/// Every node, before Endpoint::connect(): node 0 learns of exit() on others.
void listen_for_exits(net::Endpoint& endpoint) noexcept;

/// Node 0, at take-over: starts the thread that will run the program's handlers when another node
/// calls exit(). It sleeps until then.
void start_exit_thread() noexcept;

/// Called by each thread of another node that was sent home; the last ends the process.
[[noreturn]] void end_worker_thread() noexcept;

}  // namespace hiroba::abi
