// SPDX-License-Identifier: BSD-3-Clause
// Role: the waiting of gates.
// Invariant: a sleeper counts itself before the kernel compares the value, and an opener stores
// the value before it looks at the count (both seq_cst): one of the two sees the other.
#include "omp/team/gate.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "net/net.hpp"

namespace hiroba::omp {

void Gate::advance(const Patience& patience) noexcept {
    value_.fetch_add(1);
    if (patience.endpoint != nullptr) {
        patience.endpoint->wake_local();
    } else if (sleepers_.load() != 0) {
        syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    }
}

void Gate::pass(std::uint32_t seen, const Patience& patience) noexcept {
    if (value() != seen) return;
    if (patience.endpoint != nullptr) {
        patience.endpoint->wait_until([this, seen] { return value() != seen; });
        return;
    }
    for (std::uint32_t i = 0; i < patience.spins; ++i) {
        if (value() != seen) return;
        __builtin_ia32_pause();
    }
    for (std::uint32_t i = 0; i < patience.yields; ++i) {
        if (value() != seen) return;
        sched_yield();
    }
    sleep_past(seen);
}

void Gate::sleep_past(std::uint32_t seen) noexcept {
    sleepers_.fetch_add(1);
    while (value_.load() == seen)
        syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    sleepers_.fetch_sub(1);
}

}  // namespace hiroba::omp
