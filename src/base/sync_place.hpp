// SPDX-License-Identifier: BSD-3-Clause
// Role: which construct of the program a thread synchronized at last, and from where it was called:
// what statistics are kept by, and what a race report names.
// Invariant: written by the thread itself; code that acts on the thread's behalf runs on it.
#pragma once

#include <cstdint>

#include "base/thread_context.hpp"

namespace hiroba {

/// As the launcher calls them.
constexpr const char* name_of(SyncKind kind) {
    constexpr const char* names[sync_kinds] = {"start or background flusher",
                                               "region",
                                               "barrier",
                                               "loop",
                                               "single",
                                               "critical",
                                               "lock",
                                               "flush",
                                               "wait"};
    return names[static_cast<unsigned>(kind)];
}

/// @param place  the return address of the entry point, or the region's function
inline void synchronizes_at(SyncKind kind, const void* place) noexcept {
    this_thread().place = {reinterpret_cast<std::uintptr_t>(place), kind};
}

}  // namespace hiroba
