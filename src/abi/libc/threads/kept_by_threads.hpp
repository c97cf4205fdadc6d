// SPDX-License-Identifier: BSD-3-Clause
// Role: what a thread of a region does that it alone may go on with, on its node
// (docs/decisions/small-regions-stay.md).
#pragma once

#include "abi/world.hpp"
#include "omp/team/told_apart.hpp"

namespace hiroba::abi {

/// The calling thread of the program has something from here on that another node would not have.
/// The initial thread leads its regions on one node, and a thread in no region is in no team.
inline void note_kept_by_thread() noexcept {
    if (world() == nullptr || world()->omp == nullptr) return;
    omp::Runtime& runtime = *world()->omp;
    if (!runtime.is_initial_thread() && runtime.place().level > 0)
        omp::program_tells_threads_apart.store(true, std::memory_order_relaxed);
}

}  // namespace hiroba::abi
