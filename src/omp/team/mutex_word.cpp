// SPDX-License-Identifier: BSD-3-Clause
// Role: the futex mutex. Source: Drepper, "Futexes are tricky", mutex 3.
// Invariant: only a word that was 2 is woken on unlock, and a sleeper always leaves it 2.
#include "omp/team/mutex_word.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace hiroba::omp {

namespace {
constexpr int spins_max = 200, yields_max = 16;

std::atomic_ref<std::uint32_t> at(std::uint32_t* word) { return std::atomic_ref(*word); }
}  // namespace

bool try_lock_word(std::uint32_t* word) noexcept {
    std::uint32_t open = 0;
    // Pairs with the exchange in unlock_word().
    return at(word).compare_exchange_strong(open, 1, std::memory_order_acquire,
                                            std::memory_order_relaxed);
}

void lock_word(std::uint32_t* word) noexcept {
    for (int i = 0; i < spins_max + yields_max; ++i) {
        if (at(word).load(std::memory_order_relaxed) == 0 && try_lock_word(word)) return;
        if (i < spins_max)
            __builtin_ia32_pause();
        else
            sched_yield();
    }
    while (at(word).exchange(2, std::memory_order_acquire) != 0)  // pairs with unlock_word()
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
}

void unlock_word(std::uint32_t* word) noexcept {
    // Pairs with the acquires of the next holder.
    if (at(word).exchange(0, std::memory_order_release) == 2)
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace hiroba::omp
