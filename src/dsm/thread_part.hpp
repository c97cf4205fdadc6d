// SPDX-License-Identifier: BSD-3-Clause
// Role: what the shared memory keeps of a thread.
#pragma once

#include <cstdint>

#include "base/thread_room.hpp"

namespace hiroba::dsm {

struct ThreadPart {
    /// 1 + block whose critical section it is in; `announced`: without its latch (dsm/engine).
    std::uint64_t atomic_block = 0;
    std::uintptr_t fault_address = 0;  ///< the fault being resolved, 0: none (dsm/memory)
    /// The part of the program's stack under our frames while the thread flushes, where the program
    /// has nothing; else empty.
    std::uintptr_t frames_begin = 0, frames_end = 0;
    std::uint64_t atomic_word = 0;  ///< what an announced atomic found
    bool knows_word = false;
    std::uint32_t announced_atomics = 0;  ///< how many it has made, of blocks that are held

    static constexpr std::uint64_t announced = std::uint64_t{1} << 63;
    bool is_in_atomic_of(std::uint32_t block) const noexcept {
        return (atomic_block & ~announced) == block + std::uint64_t{1};
    }
    bool is_announced() const noexcept { return (atomic_block & announced) != 0; }
};
inline constexpr ThreadRoom<ThreadPart, 1> thread_part;

}  // namespace hiroba::dsm
