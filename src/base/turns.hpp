// SPDX-License-Identifier: BSD-3-Clause
// Role: threads that take turns. A simulator runs many threads of many nodes on one thread of the
// machine, in virtual time: there, waiting means giving the turn to another, and spinning would
// last for ever.
// Invariant: a thread belongs to one scheduler, the kernel or a Turns, for its whole life.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

#include "base/thread_context.hpp"

namespace hiroba {

/// A scheduler of the calling thread that takes the kernel's place, in tests.
class Turns {
public:
    virtual ~Turns() = default;
    /// Lets others run; returns when it is the calling thread's turn again, somewhat later.
    virtual void pass() noexcept = 0;
    /// Virtual nanoseconds. Reading the clock takes time, so that a loop until a time ends.
    virtual std::uint64_t now_ns() noexcept = 0;
};

/// nullptr: the kernel schedules the calling thread. Async-signal-safe.
inline Turns* turns_of_this_thread() noexcept {
    const ThreadContext* const context = this_thread_if_known();
    return context != nullptr ? context->turns : nullptr;
}

/// Lets other threads of this machine run. A service thread sleeps for a moment: beside a thread
/// that computes its yield would last until the kernel's next tick, some 4 ms, while who wakes goes
/// first (base/short_slice.hpp).
inline void leave_core() noexcept {
    const ThreadContext* const context = this_thread_if_known();
    if (context == nullptr || !context->is_service) [[likely]] {
        sched_yield();
    } else {
        constexpr timespec nap{0, 30'000};
        nanosleep(&nap, nullptr);
    }
}

/// Lets other threads run.
inline void yield() noexcept {
    if (Turns* const turns = turns_of_this_thread()) {
        turns->pass();
    } else {
        leave_core();
    }
}

}  // namespace hiroba
