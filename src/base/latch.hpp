// SPDX-License-Identifier: BSD-3-Clause
// Role: waiting. A one-byte mutual exclusion for the fault path, and the spin-then-yield pause.
// Invariant: nothing here sleeps in the kernel or allocates; all of it may run in a signal handler.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/turns.hpp"

namespace hiroba {

/// Spin briefly, then yield: a pure spinner starves its neighbour for 8 ms when cores are short.
class Backoff {
public:
    void pause() noexcept {
        if (Turns* const turns = turns_of_this_thread()) [[unlikely]] {
            // Not counted further: explored runs are told apart by what lies on stacks.
            yields_ = 1;
            return turns->pass();
        }
        if (spins_ < spins_before_yield) {
            ++spins_;
            __builtin_ia32_pause();
        } else {
            ++yields_;
            leave_core();
        }
    }
    std::uint32_t yields() const noexcept { return yields_; }
    void reset() noexcept { spins_ = yields_ = 0; }

private:
    static constexpr std::uint32_t spins_before_yield = 100;
    std::uint32_t spins_ = 0;
    std::uint32_t yields_ = 0;
};

/// Mutual exclusion in one byte; zero-initialized memory is an open latch.
class Latch {
public:
    void lock() noexcept {
        Backoff backoff;
        while (!try_lock()) backoff.pause();
    }
    bool try_lock() noexcept {
        // Pairs with the release store in unlock().
        return word_.load(std::memory_order_relaxed) == 0 &&
               word_.exchange(1, std::memory_order_acquire) == 0;
    }
    void unlock() noexcept { word_.store(0, std::memory_order_release); }  // pairs with try_lock()
    /// Waits until it is open, and sees what its holders have done up to then. Cheaper than taking
    /// it: no locked instruction.
    void await_open() const noexcept {
        Backoff backoff;
        while (word_.load(std::memory_order_acquire) != 0) backoff.pause();  // as try_lock()
    }

private:
    std::atomic<std::uint8_t> word_{0};
};

}  // namespace hiroba
