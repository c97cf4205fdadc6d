// SPDX-License-Identifier: BSD-3-Clause
// Role: atomics that several threads of a node make on a block whose lock it keeps. Each is the
// processor's own, so they need nothing of each other; only who ends the keeping has to wait for
// them. So a thread says where it is in a place of its own, and no latch goes from core to core.
// Invariant: who announces looks behind that whether the block is open to it; who ends the keeping
// closes it, and looks behind that who is there. One of the two sees the other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class AnnouncedAtomics {
public:
    /// False: the thread's place is another's, too, and taken.
    bool enter(const ThreadContext& thread, BlockId block) noexcept {
        std::uint64_t none = 0;
        // Sequentially consistent: pairs with await_none().
        return place_of(thread).compare_exchange_strong(none, block + std::uint64_t{1});
    }
    /// What the thread has done there is seen behind await_none().
    void leave(const ThreadContext& thread) noexcept {
        place_of(thread).store(0, std::memory_order_release);
    }
    /// Waits for the threads that are at `block`, which is open to no more of them.
    void await_none(BlockId block) const noexcept {
        std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with enter()
        for (const Place& place : places_) {
            Backoff backoff;
            while (place.block.load(std::memory_order_acquire) == block + std::uint64_t{1})
                backoff.pause();
        }
    }

private:
    struct alignas(64) Place {
        std::atomic<std::uint64_t> block{0};  ///< plus 1
    };
    std::atomic<std::uint64_t>& place_of(const ThreadContext& thread) noexcept {
        return places_[thread.global_thread % places_.size()].block;
    }

    std::array<Place, 64> places_{};
};

}  // namespace hiroba::dsm
