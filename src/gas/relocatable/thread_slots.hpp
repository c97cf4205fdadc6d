// SPDX-License-Identifier: BSD-3-Clause
// Role: the slots in which threads of this process announce their hits, and the barrier that makes
// announcements visible to movers (include/hiroba/gas_cache.hpp).
// Invariant: process-wide, as threads and membarrier(2) are; several spaces share it, since the
// addresses announced differ. A slot's sums survive its thread.
#pragma once

#include <span>

#include "hiroba/gas_cache.hpp"

namespace hiroba::gas {

/// The calling thread's slot, made on first use; nullptr where hits are not possible: the kernel
/// refuses membarrier(2), or there are more than slots_max threads.
ThreadSlot* slot_of_this_thread() noexcept;

/// After it, stores of every thread of this process that were made before are visible, and none
/// that is made later was early. Nothing where slot_of_this_thread() gives nothing.
void fence_all_threads() noexcept;

/// The slots in use or used before.
std::span<ThreadSlot> thread_slots() noexcept;

inline constexpr std::size_t slots_max = 1024;

}  // namespace hiroba::gas
