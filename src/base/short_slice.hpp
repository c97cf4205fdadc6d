// SPDX-License-Identifier: BSD-3-Clause
// Role: asks the scheduler to run a thread soon after it is woken, for threads that sleep mostly
// and then have a few microseconds of work that another node waits for.
#pragma once

namespace hiroba {

/// Makes this thread, when woken, run before threads of ordinary slices that compute on its core,
/// as far as it has used less than its share. The share stays the same; it is handed out in smaller
/// pieces.
///
/// Linux 6.6 to 6.11 let a computing thread finish its slice of some milliseconds and know no
/// request for less: the call does nothing there. Before 6.6 a thread that has slept goes first
/// anyway.
/// Needs no privilege; not inherited by threads and processes that this one starts.
/// Source: sched_setattr(2), sched(7); slices of EEVDF, Linux 6.12.
void ask_for_short_slices() noexcept;

}  // namespace hiroba
