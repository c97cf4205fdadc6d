// SPDX-License-Identifier: BSD-3-Clause
// Role: what the kernel lets a thread have from its maker (signal mask, affinity, scheduling, name
// and the like): written down for the threads that a region would have made, and taken over.
// Invariant: what is written down lies in global memory and never changes.
#pragma once

#include <signal.h>

namespace hiroba::abi {

/// At the start of each node, before the program's threads: they begin with these and `mask`.
void note_first_attributes(const sigset_t& mask) noexcept;

/// The program changes something of these on this node by a call.
void thread_attribute_changed() noexcept;

/// See omp::InheritanceHooks.
const void* attributes_of_this_thread() noexcept;
void take_over_attributes(const void* attributes) noexcept;

}  // namespace hiroba::abi
