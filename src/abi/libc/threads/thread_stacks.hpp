// SPDX-License-Identifier: BSD-3-Clause
// Role: where threads that the program makes stand: a stack in global memory and a private
// alternate stack for signals.
// Invariant: a stack goes back to the heap when its thread has left it for good: it was joined, or
// it is detached and the kernel knows it no more. The books are in private memory.
#pragma once

#include <pthread.h>

#include <optional>

#include "base/ids.hpp"

namespace hiroba::abi {

struct ThreadStack;

/// A stack for a new thread, of the size or at the place that `attributes` say, and put into them.
/// Only on several nodes. nullptr: no memory, and a line has said so.
/// @param attributes  a copy of the program's; detached or not is read from it
ThreadStack* open_thread_stack(pthread_attr_t& attributes) noexcept;
/// The thread was not made after all.
void close_thread_stack(ThreadStack& stack) noexcept;

/// The new thread's first act: its signals are taken on the alternate stack from here on.
void enter_thread_stack(ThreadStack& stack) noexcept;
/// Signals find the new thread by now.
void note_thread_started(ThreadStack& stack) noexcept;
/// Whether this node has made the thread, and they do not find it yet.
bool is_thread_starting(pthread_t thread) noexcept;

void note_thread_joined(pthread_t thread) noexcept;
void note_thread_detached(pthread_t thread) noexcept;

/// Whether the program has made `thread` here, and it was not joined.
bool is_thread_of_this_node(pthread_t thread) noexcept;
/// The node where `thread` was made, as its place says, if that is another.
std::optional<NodeId> other_maker(pthread_t thread) noexcept;
bool is_thread_of_other_node(pthread_t thread) noexcept;

}  // namespace hiroba::abi
