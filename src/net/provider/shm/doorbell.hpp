// SPDX-License-Identifier: BSD-3-Clause
// Role: sleeping until another process has something, and waking those who sleep.
//
// A thread that wakes first makes visible what it has (W1: a queue's tail, any word), then looks
// for sleepers (W2). A thread that will sleep first announces itself (S1), then looks once more for
// what it waits for (S2). A sequentially consistent fence stands between W1 and W2 and between S1
// and S2, so in the order of the two fences the later one sees what came before the earlier: either
// the waker sees the sleeper, or the sleeper sees the store. Both may happen; neither cannot.
//
// A waker that sees a sleeper counts `rings` up and wakes. The sleeper read `rings` before S1, so
// if the waker comes before the kernel has put the sleeper to bed, the kernel finds another number
// than expected and does not let it sleep.
#pragma once

#include <cstdint>

#include "net/provider/shm/layout.hpp"

namespace hiroba::net::shm {

/// Orders what the caller made visible (W1) before ring_after_fence() (W2).
void store_fence() noexcept;

/// Wakes every thread asleep at `bell`; a load when there is none. After store_fence().
void ring_after_fence(Bell& bell) noexcept;

/// Both of the above.
inline void ring(Bell& bell) noexcept {
    store_fence();
    ring_after_fence(bell);
}

/// Sleeps at `bell` until rung or `timeout_ns` passed, unless `ready(argument)` says there is
/// something already. Also returns early for no reason. Any thread, several at once.
void sleep_at(Bell& bell, std::uint64_t timeout_ns, bool (*ready)(void*), void* argument) noexcept;

}  // namespace hiroba::net::shm
