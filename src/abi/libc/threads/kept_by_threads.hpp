// SPDX-License-Identifier: BSD-3-Clause
// Role: what a thread of a region does that it alone may go on with, on its node
// (docs/decisions/small-regions-stay.md). kept_by_threads.cpp interposes the calls that do nothing
// but that.
#pragma once

#include "abi/libc/real.hpp"
#include "base/program_call.hpp"
#include "omp/process/system_libraries.hpp"
#include "omp/team/told_apart.hpp"

namespace hiroba::abi {

using omp::note_kept_by_thread;

/// As note_kept_by_thread(), where the call is not a system library's, which keeps nothing for the
/// program. Async-signal-safe.
/// @param caller  the return address of the interposed function
inline void note_kept_by_caller(const void* caller) noexcept {
    if (!omp::serves_regions) return;
    // Relaxed: the flag alone.
    if (omp::program_tells_threads_apart.load(std::memory_order_relaxed)) return;
    const bool of_program =
        is_program_call(caller) || (!is_own_code(caller) && !omp::is_system_code(caller));
    if (of_program) note_kept_by_thread();
}

}  // namespace hiroba::abi
