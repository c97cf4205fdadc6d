// SPDX-License-Identifier: BSD-3-Clause
// Role: see single_turn.hpp. What the first thread stores at once in a `single nowait` must not be
// overtaken by what its neighbours do behind that. Between its answer and its store lie a few
// instructions on one host. Here a fault lies between, whose signal takes microseconds before
// any thread can know of it, and the kernel may take the processor away meanwhile. No node compares
// two threads of one node (docs/protocol.md#before-own), so none would tell.
#include "omp/team/single_turn.hpp"

#include <pthread.h>

#include "base/clock.hpp"
#include "base/latch.hpp"
#include "base/turns.hpp"

namespace hiroba::omp {

namespace {
/// A signal's way to its handler, and the way back to the store, by far: both wait for locks of the
/// kernel's at times.
constexpr std::uint64_t step_ns = 30'000;
/// Longer than that nobody waits for a thread that has no processor, or sleeps.
constexpr std::uint64_t wait_max_ns = 5'000'000;

/// What the thread has computed; past every step where that is not known.
std::uint64_t computed_ns(clockid_t clock) noexcept {
    timespec time{};
    if (clock_gettime(clock, &time) != 0) return ~std::uint64_t{0};
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}
}  // namespace

void SingleTurn::won() noexcept {
    ThreadContext& thread = this_thread();
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
        clock_.store(clock, std::memory_order_relaxed);
        first_.store(&thread, std::memory_order_relaxed);
        thread.goes_first = &first_;
    }
    asking_.fetch_sub(1, std::memory_order_release);  // pairs with lost()
}

void SingleTurn::lost() noexcept {
    asking_.fetch_sub(1, std::memory_order_release);  // pairs with the line below
    Backoff backoff;
    while (asking_.load(std::memory_order_acquire) != 0) backoff.pause();
    let_first_go();
}

void SingleTurn::let_first_go() noexcept {
    ThreadContext* const first = first_.load(std::memory_order_acquire);
    if (first == nullptr || first == &this_thread() || turns_of_this_thread() != nullptr) return;
    const clockid_t clock = clock_.load(std::memory_order_relaxed);
    const std::uint64_t begin = now_ns();
    std::uint64_t computed = computed_ns(clock);
    Backoff backoff;
    // Acquire: pairs with end_going_first().
    while (first_.load(std::memory_order_acquire) == first && now_ns() - begin < wait_max_ns) {
        backoff.pause();
        const std::uint64_t now = computed_ns(clock);
        // A fault ends before the store that it was for.
        if (std::atomic_ref{first->fault_address}.load(std::memory_order_relaxed) != 0) {
            computed = now;
        } else if (now - computed >= step_ns) {
            return;
        }
    }
}

}  // namespace hiroba::omp
