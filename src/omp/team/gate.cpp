// SPDX-License-Identifier: BSD-3-Clause
// Role: the waiting of gates.
#include "omp/team/gate.hpp"

#include <sched.h>

#include "net/net.hpp"

namespace hiroba::omp {

void Gate::advance(const Patience& patience) noexcept {
    bell_.ring();
    if (patience.endpoint != nullptr) patience.endpoint->wake_local();
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
    bell_.sleep_past(seen);
}

}  // namespace hiroba::omp
