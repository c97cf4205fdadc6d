// SPDX-License-Identifier: BSD-3-Clause
// Role: what is known of whether threads of one number can tell each other apart from region to
// region. Such a program's regions do not move (docs/decisions/small-regions-stay.md).
// Invariant: what a node's threads have told it their leader knows behind the region's end.
#pragma once

#include <atomic>
#include <cstdint>

namespace hiroba::omp {

/// The program, or a library of its, has data that each thread has for itself, or asks what thread
/// it is (process/threads_apart.hpp), or a thread has kept something for the next region. Never
/// reset.
inline std::atomic<bool> program_tells_threads_apart{false};

/// The calling thread runs nothing of the program but regions and their tasks: it is no leader,
/// which is the same thread wherever its regions run.
inline constinit thread_local bool serves_regions = false;

/// The calling thread has, or has asked for, something that another of its number would not have.
inline void note_kept_by_thread() noexcept {
    if (serves_regions) program_tells_threads_apart.store(true, std::memory_order_relaxed);
}

/// Locks which the calling thread holds, and which know by whom they are held.
inline constinit thread_local std::uint32_t owned_locks = 0;

}  // namespace hiroba::omp
