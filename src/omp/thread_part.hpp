// SPDX-License-Identifier: BSD-3-Clause
// Role: what the OpenMP runtime keeps of a thread.
#pragma once

#include <cstdint>

#include "base/thread_room.hpp"

namespace hiroba::omp {

struct ThreadState;
struct ToolThread;

/// A compiler's runtime call has said of the atomic behind it that it adds what lies at `term` to
/// the variable of a reduction.
struct AnnouncedTerm {
    std::uintptr_t code = 0;  ///< behind the call; 0: nothing was said
    const void* term = nullptr;
};

struct ThreadPart {
    ThreadState* state = nullptr;  ///< nullptr: it has met no construct
    ToolThread* tool = nullptr;    ///< what is kept of it for a first-party tool (omp/tool)
    AnnouncedTerm announced;       ///< of the thread's next atomic (omp/atomic)
    /// Before its next atomic or lock it is to acquire what others have stored in singles it did
    /// not get (RuntimeCore::acquire_lost_singles()).
    bool lacks_stores = false;
};
inline constexpr ThreadRoom<ThreadPart, 2> thread_part;

/// The calling thread lacks stores, and does not any more when this returns.
void acquire_lost_singles() noexcept;

}  // namespace hiroba::omp
