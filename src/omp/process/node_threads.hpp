// SPDX-License-Identifier: BSD-3-Clause
// Role: starts the threads of the program on stacks in global memory.
// Invariant: a thread's stack, control block and thread-local storage lie in the slice of its
// global number, so that each has an address of its own over the whole job; the slice's first page
// stays out of use and catches overflow.
#pragma once

#include <csignal>
#include <cstdint>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::omp {

/// Runs on the new thread; must not return (thread exit would unwind into libc's bookkeeping).
using ThreadBody = void (*)(std::uint32_t local_thread);

/// The part of a slice that a thread may use: all but the guard page at its low end.
dsm::AddressRange usable_stack(dsm::AddressRange slice) noexcept;

/// Touches what a thread uses before it has an alternate stack, on which alone its own faults can
/// be resolved: control block, thread-local storage and the first frames.
void touch_top(dsm::AddressRange stack) noexcept;

/// Starts the first `threads` threads of the node, which run `body`; none enters it before all
/// exist. Each has an alternate signal stack, its global number, and the caller's signal mask.
/// The caller must have an alternate signal stack: creating a thread writes to its slice.
Result<void> start_node_threads(const dsm::AddressMap& map, NodeId self, std::uint32_t threads,
                                ThreadBody body);

/// Starts one more thread in the same body, while the others run. One caller at a time.
/// @param local_thread  below map.shape().threads_per_node, and not started before
Result<void> start_node_thread(const dsm::AddressMap& map, NodeId self, std::uint32_t local_thread);

/// How many threads have been started.
std::uint32_t node_threads_started() noexcept;

/// Blocks every signal except the faults, which must reach the thread that raised them.
/// Returns the mask before.
sigset_t block_asynchronous_signals() noexcept;

}  // namespace hiroba::omp
