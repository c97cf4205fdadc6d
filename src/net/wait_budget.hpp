// SPDX-License-Identifier: BSD-3-Clause
// Role: how a waiting thread spends its time: it spins, then yields, then should sleep.
// Invariant: decides only; it never sleeps itself and allocates nothing.
//
// Spinning sees an event fastest while every waiter has a core, and starves the thread that would
// bring the event when it has none. A yield tells which it is: when no other thread wants the core
// it returns at once, else only after the other had its turn. So the length of a yield teaches how
// long to spin before the next one.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace hiroba::net {

/// A yield that takes so long let another thread have the core: between one without another thread
/// (0.2 to 0.5 us) and a switch there and back (over 1.5 us), and more where the processor, an
/// emulated one, is that much slower. Any thread.
std::uint64_t shared_core_yield_ns() noexcept;

/// A yield that takes so long let another thread compute: a switch there and back takes less.
inline constexpr std::uint64_t computing_neighbour_yield_ns = 200'000;

/// Asks for short slices for this thread, which is seen to share its core: with slices of
/// milliseconds each exchange between two nodes takes one. Any thread; nothing the second time.
void ask_for_short_slices_once() noexcept;

/// What the waits of a node have learned about its cores. Any thread; a lost update is harmless.
class CoreShortage {
public:
    std::uint32_t spins() const noexcept { return spins_.load(std::memory_order_relaxed); }

    /// Learns from one yield of this thread.
    void yield_took(std::uint64_t ns) noexcept {
        const std::uint32_t before = spins();
        // Relaxed: a hint by itself; nothing is ordered by it.
        if (ns >= shared_core_yield_ns()) {
            spins_.store(spins_min, std::memory_order_relaxed);
            if (ns >= computing_neighbour_yield_ns) ask_for_short_slices_once();
        } else if (before < spins_max) {
            spins_.store(before * 2 < spins_max ? before * 2 : spins_max,
                         std::memory_order_relaxed);
        }
    }

    /// Whether who waits for an answer should first let other threads have their turn.
    bool may_give_turn(std::uint64_t now_ns) const noexcept {
        return now_ns >= no_turn_before_ns_.load(std::memory_order_relaxed);
    }
    /// Learns from one turn. A thread that took all of a long turn had no question of its own: for
    /// some time no turn is given, so that such threads get less than a tenth.
    void turn_took(std::uint64_t ns, std::uint64_t now_ns) noexcept {
        if (ns > turn_max_ns)
            no_turn_before_ns_.store(now_ns + ns * turn_rest, std::memory_order_relaxed);
    }

    /// Forgets what yields have taught.
    void forget() noexcept { spins_.store(spins_max, std::memory_order_relaxed); }

    static constexpr std::uint32_t spins_min = 1;
    static constexpr std::uint32_t spins_max = 100;
    /// Turns of many threads that ask and wait again; a tenth of a slice of one that computes.
    static constexpr std::uint64_t turn_max_ns = 300'000;
    static constexpr std::uint64_t turn_rest = 10;

private:
    std::atomic<std::uint32_t> spins_{spins_max};
    std::atomic<std::uint64_t> no_turn_before_ns_{0};
};

/// One wait. Owned by the waiting thread.
class WaitBudget {
public:
    explicit WaitBudget(CoreShortage& shortage) noexcept : shortage_(shortage) {}

    /// Passes a moment. False when it is time to sleep.
    bool pass() noexcept {
        // Where threads take turns nothing happens while one spins.
        if (turns_of_this_thread() != nullptr) [[unlikely]]
            return false;
        if (spun_ < shortage_.spins()) {
            ++spun_;
            __builtin_ia32_pause();
            return true;
        }
        spun_ = 0;
        const std::uint64_t before = now_ns();
        if (yield_until_ns_ == 0) yield_until_ns_ = before + budget_ns_;
        if (before >= yield_until_ns_) return false;
        sched_yield();
        shortage_.yield_took(now_ns() - before);
        return true;
    }

    /// For who waits for an answer from far: lets those have their turn whose questions can go with
    /// its own, or while it is under way. Free where nobody is ready to run: an answer takes
    /// longer. False when it gave none.
    bool give_turn() noexcept {
        if (turns_of_this_thread() != nullptr) [[unlikely]]
            return false;
        const std::uint64_t before = now_ns();
        if (!shortage_.may_give_turn(before)) return false;
        sched_yield();
        const std::uint64_t after = now_ns();
        shortage_.turn_took(after - before, after);
        return true;
    }

    /// Something came: more is likely to follow, so sleep is as far off as at the start.
    void renew() noexcept {
        spun_ = 0;
        yield_until_ns_ = 0;
        budget_ns_ = budget_first_ns;
    }

    /// After a wake-up (or the time limit of sleeps): poll again, for 50 us only.
    void slept() noexcept {
        spun_ = 0;
        yield_until_ns_ = 0;
        budget_ns_ = budget_after_sleep_ns;
    }

    static constexpr std::uint64_t budget_first_ns = 1'000'000;
    static constexpr std::uint64_t budget_after_sleep_ns = 50'000;

private:
    CoreShortage& shortage_;
    std::uint32_t spun_ = 0;
    std::uint64_t budget_ns_ = budget_first_ns;
    std::uint64_t yield_until_ns_ = 0;  ///< 0: has not yielded yet
};

}  // namespace hiroba::net
