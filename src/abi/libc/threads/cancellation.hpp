// SPDX-License-Identifier: BSD-3-Clause
// Role: pthread_cancel() of threads that the program has made, on any node. The thread cancels
// itself, where it executes the program or has ended the call in which it waits: libc's signal
// would unwind it in the middle of ours.
// Invariant: functions that may not return are not noexcept.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "dsm/sync/deadline.hpp"

namespace hiroba::abi {

/// What a letter to a thread says in place of a signal: the number that libc itself uses.
constexpr int cancels = 32;

/// The calling thread, which the program has made, may be cancelled.
void allow_cancellation() noexcept;
bool may_be_cancelled() noexcept;

/// Whether POSIX lets a thread be cancelled in this call. Async-signal-safe.
/// @param second  the second argument
bool is_cancellation_point(long number, long second) noexcept;

/// Until its end, the calling thread is in a call of this library for the program: what cancels it
/// ends the call where that is a cancellation point, and comes after it.
class CancellableCall {
public:
    /// @param until  of a wait that no signal ends; cancelling sets it to a time that is over
    explicit CancellableCall(bool is_point, dsm::Deadline* until = nullptr) noexcept;
    CancellableCall(const CancellableCall&) = delete;
    CancellableCall& operator=(const CancellableCall&) = delete;

    /// Carries out what has come before, where the call is a function of libc. May not return.
    void begin() const;
    void end() const noexcept;

private:
    std::uintptr_t frame_before_;
    dsm::Deadline* until_before_;
    bool is_point_before_;
    bool is_point_;
};

/// Behind a CancellableCall of a function of libc that was interrupted, with nothing done: carries
/// out what has come. May not return.
void end_cancellation_point();

/// Whether the calling thread was asked to end, and has not done so yet.
bool is_cancellation_waiting() noexcept;
void ask_for_cancellation() noexcept;

/// What the signal handler that has found so is to do.
enum class Cancelling : std::uint8_t {
    now,        ///< cancel_this_thread()
    ends_call,  ///< the interrupted call is to end, if it still waits, and the handler to come back
    comes_later  ///< the handler is to come back
};
/// @param interrupted  the stack pointer
Cancelling look_at_cancellation(std::uintptr_t interrupted) noexcept;
/// May not return.
void cancel_this_thread();

/// For a wait that only cancelling ends.
constexpr dsm::Deadline no_deadline{CLOCK_MONOTONIC, {.tv_sec = time_t{1} << 40, .tv_nsec = 0}};

/// Before the first thread of this node is cancelled: a signal handler has to load nothing then.
void prepare_cancellation() noexcept;

}  // namespace hiroba::abi
