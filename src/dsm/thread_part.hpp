// SPDX-License-Identifier: BSD-3-Clause
// Role: what the shared memory keeps of a thread.
#pragma once

#include <cstdint>

#include "base/thread_room.hpp"

namespace hiroba::dsm {

struct ThreadPart {
    std::uint64_t atomic_block = 0;    ///< 1 + block whose critical section it is in
    std::uintptr_t fault_address = 0;  ///< the fault being resolved, 0: none (dsm/memory)
    /// The part of the program's stack under our frames while the thread flushes, where the program
    /// has nothing; else empty.
    std::uintptr_t frames_begin = 0, frames_end = 0;
    std::uint64_t waited_at = 0, waited_word = 0;  ///< await_write() was told last

    std::uint64_t missed_ns = 0;  ///< in page faults on global memory, so far
    bool has_asked = false;       ///< another node for its own block, in the last fault

    bool is_in_atomic_of(std::uint32_t block) const noexcept {
        return atomic_block == block + std::uint64_t{1};
    }
    /// Whether another wait than the last one begins: elsewhere, or for what has changed since.
    bool begins_to_wait(std::uint64_t offset, std::uint64_t word) noexcept {
        const bool begins = offset != waited_at || word != waited_word;
        waited_at = offset;
        waited_word = word;
        return begins;
    }
};
inline constexpr ThreadRoom<ThreadPart, 1> thread_part;

}  // namespace hiroba::dsm
