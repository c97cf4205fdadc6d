// SPDX-License-Identifier: BSD-3-Clause
// Role: the order of a node's threads at one `single`: the thread that gets it goes on before its
// neighbours.
// Invariant: private to the node. No thread waits for another node here, but for answers under way,
// and every wait ends by itself: it makes likely what on one host is nearly sure, and no program
// needs it to be right. What threads of other nodes do for the same: lost_singles.hpp.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

#include "base/thread_context.hpp"

namespace hiroba::omp {

/// The turn at one construct of a team. Zeroed memory: no thread asks.
/// @thread any, save what is said
class SingleTurn {
public:
    /// Called before the thread asks whether the `single` is its own.
    void ask() noexcept { asking_.fetch_add(1, std::memory_order_relaxed); }
    /// The `single`, construct `sequence`, is the thread's own. Until the thread calls the runtime
    /// again its neighbours let it go first.
    void won(std::uint64_t sequence) noexcept;
    /// The `single` is another thread's. Returns when the neighbours that asked have their answers
    /// and the executing thread has made its first stores: it is in the runtime again, or has
    /// computed for some microseconds without a fault. Returns after 5 ms if the executing thread
    /// sleeps, after 500 ms in any case.
    void lost() noexcept;

    /// The thread goes on without waiting for anybody.
    void goes_without() noexcept {
        asking_.fetch_sub(1, std::memory_order_release);  // pairs with is_own_since()
    }
    /// Whether a thread of this node has got this construct, or one of its sections, or a later one
    /// of this turn. Waits until the threads that ask have their answers; not of one that asks.
    bool is_own_since(std::uint64_t sequence) noexcept;
    /// Waits for the executing thread as lost() does.
    void let_first_go() noexcept;

private:
    std::atomic<std::uint32_t> asking_{0};
    std::atomic<std::uint64_t> own_{0};  ///< 1 + the number of the last construct that it got
    std::atomic<clockid_t> clock_{0};    ///< of the processor time of the thread that goes first
    /// The thread that goes first; null: none.
    std::atomic<ThreadContext*> first_{nullptr};
};

}  // namespace hiroba::omp
