// SPDX-License-Identifier: BSD-3-Clause
// Role: lets a thread that waits within a page fault die of what would have ended the program.
// A fault handler holds all signals until the fault is resolved. A fault that waits for a node
// which never answers would hold them for ever, and Ctrl-C would do nothing.
#pragma once

namespace hiroba {

/// Ends the process if SIGHUP, SIGINT or SIGTERM waits for this thread, which is within a fault,
/// the program's action for it is the default one, and the program did not block it.
///
/// @thread one that waits and has slept; outside of a fault it does nothing
void obey_deadly_signals() noexcept;

}  // namespace hiroba
