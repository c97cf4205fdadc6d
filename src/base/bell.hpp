// SPDX-License-Identifier: BSD-3-Clause
// Role: what a service thread sleeps on until another thread has work for it.
// Invariant: a thread that read rings() before it looked for work misses no ring: it counts itself
// as a sleeper before the kernel compares the number, and who rings adds to the number before it
// looks at the count (both seq_cst), so one of the two sees the other.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace hiroba {

/// Not std::atomic::wait(): that yields four times before it sleeps, and beside a thread that
/// computes each yield lasts until the kernel's next tick, some 4 ms.
/// Thread: any; async-signal-safe.
class Bell {
public:
    std::uint32_t rings() const noexcept { return rings_.load(); }
    void ring() noexcept {
        rings_.fetch_add(1);
        if (sleepers_.load() != 0) call_kernel(FUTEX_WAKE_PRIVATE, INT_MAX);
    }
    /// Returns once it has been rung since rings() was `seen`.
    void sleep_past(std::uint32_t seen) noexcept {
        sleepers_.fetch_add(1);
        while (rings() == seen) call_kernel(FUTEX_WAIT_PRIVATE, seen);
        sleepers_.fetch_sub(1);
    }

private:
    void call_kernel(int operation, std::uint32_t value) noexcept {
        const int saved_errno = errno;
        syscall(SYS_futex, &rings_, operation, value, nullptr, nullptr, 0);
        errno = saved_errno;
    }

    std::atomic<std::uint32_t> rings_{0};
    std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace hiroba
