// SPDX-License-Identifier: BSD-3-Clause
// Role: asks the scheduler to run a thread soon after it is woken: threads that sleep mostly and
// then have a few microseconds of work that another node waits for, and threads of the program that
// share their core with others.
#pragma once

namespace hiroba {

/// Slices of the program's threads are longer, so that a service thread which is woken beside one
/// that computes still goes first.
enum class ShortSlice {
    of_service,  ///< 0.1 ms, the shortest the kernel grants; not inherited
    of_program,  ///< 0.2 ms; inherited, since the program could see a policy that is reset
};

/// Makes this thread, when woken, run before threads of ordinary slices that compute on its core,
/// as far as it has used less than its share. The share stays the same; it is handed out in smaller
/// pieces. A thread of service naps where others yield for a latch (leave_core()).
///
/// Linux 6.6 to 6.11 let a computing thread finish its slice of some milliseconds and know no
/// request for less: the call does nothing there. Before 6.6 a thread that has slept goes first
/// anyway.
/// A thread that yields gives up one slice of its own, so with short ones it comes back sooner.
/// Needs no privilege.
/// Source: sched_setattr(2), sched(7); slices of EEVDF, Linux 6.12.
void ask_for_short_slices(ShortSlice whose) noexcept;

}  // namespace hiroba
