// SPDX-License-Identifier: BSD-3-Clause
// Role: what belongs to a process and yet must be the same on all nodes: working directory, umask,
// locale, environment, user and groups, actions of signals. Node 0's is the program's; the others
// take it over at the start of the next region they are part of. Invariant: it travels as it is,
// not as the calls that made it: a node that was left out of a thousand regions has one thing to
// do.
#pragma once

#include <signal.h>
#include <sys/time.h>

#include "omp/omp.hpp"

namespace hiroba::abi {

/// Node 0, on the program's stack, before a region of several nodes: what the others must become.
omp::ProcessState publish_process_state() noexcept;

/// Other nodes, before their threads run: becomes `state`, unless it is that already. What cannot
/// be (a directory that is gone) ends the job with one line.
void apply_process_state(const omp::ProcessState& state) noexcept;

/// The program has changed something by `call`: on node 0 it travels; on another node it is said
/// once that it stays there.
void process_state_changed(const char* call) noexcept;

/// The program has opened or closed a unit of Fortran's that every node has from the start (0, 5,
/// 6): from then on it is another on node 0.
void standard_unit_changed(int unit, const char* statement) noexcept;
/// Whether this is another node than 0, and node 0 has made the unit another.
bool is_unit_of_node_0(int unit) noexcept;

/// The program has changed its user or groups.
void user_ids_changed(const char* call) noexcept;
/// The program has set an interval timer. Those of processor time each node has, since each has
/// spent a part of it; the one of real time is node 0's.
void interval_timer_changed(int which, const struct timeval& interval) noexcept;

/// libc has read another time zone.
void time_zone_changed() noexcept;

/// The program has set the action of a signal.
void signal_action_changed(int number, const struct sigaction& action) noexcept;

}  // namespace hiroba::abi
