// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/thread_part.hpp"

#include <atomic>

#include "dsm/dsm.hpp"

namespace hiroba::dsm {

// Relaxed: whether that thread goes on is asked again and again.
bool resolves_fault(ThreadContext& thread) noexcept {
    return std::atomic_ref{thread_part(thread).fault_address}.load(std::memory_order_relaxed) != 0;
}

void ignore_frames(std::uintptr_t begin, std::uintptr_t end) noexcept {
    ThreadPart& part = thread_part();
    part.frames_begin = begin;
    part.frames_end = end;
}

}  // namespace hiroba::dsm
