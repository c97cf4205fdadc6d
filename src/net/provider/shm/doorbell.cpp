// SPDX-License-Identifier: BSD-3-Clause
// Role: see doorbell.hpp; the futex system calls. The futex is not process-private: the word lies
// in shared memory and its sleepers and wakers are different processes.
#include "net/provider/shm/doorbell.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "base/fatal.hpp"

// GCC's thread sanitizer knows no fences and says so at each; what it then reports is judged by
// hand.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

namespace hiroba::net::shm {
namespace {

std::uint32_t* futex_word(Bell& bell) noexcept {
    static_assert(sizeof(bell.rings) == sizeof(std::uint32_t));
    return reinterpret_cast<std::uint32_t*>(&bell.rings);
}

/// Leaves errno alone: a wait may run below a system call wrapper of the program.
int futex(Bell& bell, int operation, std::uint32_t value, const timespec* timeout) noexcept {
    const int saved = errno;
    const long outcome =
        syscall(SYS_futex, futex_word(bell), operation, value, timeout, nullptr, 0);
    const int error = errno;
    errno = saved;
    return outcome >= 0 ? static_cast<int>(outcome) : -error;
}

}  // namespace

void store_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

void ring_after_fence(Bell& bell) noexcept {
    // Relaxed: store_fence() before it pairs with the fence in sleep_at().
    if (bell.sleepers.load(std::memory_order_relaxed) == 0) return;
    // Release, pairs with the acquire load in sleep_at(): a sleeper that read the new number sees
    // the store as well.
    bell.rings.fetch_add(1, std::memory_order_release);
    const int woken = futex(bell, FUTEX_WAKE, INT_MAX, nullptr);
    HIROBA_INVARIANT(woken >= 0, "futex wake: errno %d", -woken);
}

void sleep_at(Bell& bell, std::uint64_t timeout_ns, bool (*ready)(void*), void* argument) noexcept {
    // Acquire, pairs with ring_after_fence(); the announcement below is a release and cannot move
    // up.
    const std::uint32_t rings = bell.rings.load(std::memory_order_acquire);
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with store_fence()
    if (!ready(argument)) {
        const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000u),
                               static_cast<long>(timeout_ns % 1'000'000'000u)};
        const int outcome = futex(bell, FUTEX_WAIT, rings, &timeout);
        HIROBA_INVARIANT(
            outcome == 0 || outcome == -EAGAIN || outcome == -EINTR || outcome == -ETIMEDOUT,
            "futex wait: errno %d", -outcome);
    }
    // Relaxed: a waker that still sees us rings for nobody, which is harmless.
    bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace hiroba::net::shm
