// SPDX-License-Identifier: BSD-3-Clause
// Role: calls by which one thread tells another that something is done: through a pipe, a socket, a
// counter of events, a queue or semaphore of the system's, a lock on a file, or by a signal. So
// does sched_yield(), which a waiting loop calls; sleeps do not. What it has written before must be
// seen behind. Invariant: who tells flushes before the call, who is told behind it.
#pragma once

#include <cstdint>

namespace hiroba::abi {

struct CallArguments;

enum class Handover : std::uint8_t { none, tells, is_told, both };

/// Which of them a call is. Descriptors 0 to 2 are never such: no thread waits there for another.
Handover handover_by(long number, const CallArguments& arguments) noexcept;

/// Whether the kernel itself orders such calls of several nodes: no message goes with them.
bool is_ordered_by_kernel(long number) noexcept;

}  // namespace hiroba::abi
