// SPDX-License-Identifier: BSD-3-Clause
// Role: which construct of the program a thread synchronized at last, and from where it was called:
// what statistics are kept by, and what a race report names.
// Invariant: written by the thread itself; code that acts on the thread's behalf runs on it.
#pragma once

#include <cstdint>

#include "base/program_call.hpp"
#include "base/thread_context.hpp"

namespace hiroba {

/// As the launcher calls them.
constexpr const char* name_of(SyncKind kind) {
    constexpr const char* names[sync_kinds] = {"start or background flusher",
                                               "region",
                                               "end of region",
                                               "barrier",
                                               "loop",
                                               "single",
                                               "critical",
                                               "lock",
                                               "flush",
                                               "wait"};
    return names[static_cast<unsigned>(kind)];
}

/// @param place  the return address of the entry point, or the region's function. Where the last
///               act of that function is a call, it is jumped to: that is the region's end.
inline void synchronizes_at(SyncKind kind, const void* place) noexcept {
    ThreadContext& thread = this_thread();
    if (is_program_call(place) && thread.region != 0) {
        thread.place = {thread.region, SyncKind::end};
        return;
    }
    thread.place = {reinterpret_cast<std::uintptr_t>(place), kind};
    if (kind == SyncKind::region) thread.region = thread.place.address;
}

/// Whether its address is that of a function, and no return address.
constexpr bool is_function(const SyncPlace& place) noexcept {
    return place.kind == SyncKind::region || place.kind == SyncKind::end;
}

}  // namespace hiroba
