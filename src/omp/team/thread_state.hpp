// SPDX-License-Identifier: BSD-3-Clause
// Role: what the runtime knows of one thread: the chain of regions it is in, and its nested locks.
// Invariant: private to the node; only the owning thread writes it. The frame of the one active
// region is here; frames of nested regions, which have one thread, lie on that thread's stack.
#pragma once

#include <array>
#include <cstdint>

#include "omp/loop/loop_cursor.hpp"
#include "omp/omp.hpp"
#include "omp/team/gate.hpp"

namespace hiroba::omp {

/// One region as seen by one of its threads.
struct Frame {
    Frame* parent = nullptr;
    Place place;
    Icvs icvs;
    LoopCursor loop;
    Workshare single_copy;       ///< of the single whose executor this thread is
    std::uint64_t sequence = 0;  ///< number of the next worksharing construct
};

/// How often tasks of a thread hold locks they may take again. A lock has one holder, a task, so
/// nobody else needs to know the count.
class NestedHolds {
public:
    /// The count to change, 0 when `task` does not hold the lock. Fatal when too many are held at
    /// once.
    std::uint32_t& of(std::uint64_t key, const void* task) noexcept;
    /// The count of the lock whichever task of the thread holds it; null: none.
    std::uint32_t* held(std::uint64_t key) noexcept;

private:
    static constexpr std::size_t holds_max = 64;
    struct Hold {
        std::uint64_t key = 0;
        const void* task = nullptr;
        std::uint32_t count = 0;
    };
    std::array<Hold, holds_max> holds_{};
};

/// Where a thread stands at a barrier or join that handlers of the program may interrupt. Not on
/// its stack, which others may be comparing.
struct Standing {
    bool arrived = false, last = false;
    std::uint32_t phase = 0;
};

struct ThreadState {
    const void* runtime = nullptr;  ///< whose state this is
    std::uint32_t local_thread = 0;
    bool initial = false;    ///< global thread 0
    bool foreign = false;    ///< made by the program
    bool in_region = false;  ///< has a region to arrive at the end of
    Frame base;              ///< outside all regions
    Frame region;            ///< of the active region
    Frame* frame = &base;
    NestedHolds holds;
    Standing standing;
    Gate start;  ///< advanced when there is a region for this thread
    std::uint32_t start_seen = 0;
};

}  // namespace hiroba::omp
