// SPDX-License-Identifier: BSD-3-Clause
// Role: see wait_budget.hpp.
#include "net/wait_budget.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/short_slice.hpp"
#include "base/turns.hpp"

namespace hiroba::net {

void ask_for_short_slices_once() noexcept {
    thread_local bool asked = false;
    if (std::exchange(asked, true)) return;
    ask_for_short_slices(ShortSlice::of_program);
}

namespace {
constexpr std::uint64_t usual_ns = 1'000, most_ns = 20'000;

// What a yield takes where nobody else is ready, at most 2.5 times what the least of all calls
// takes, doubled: a switch there and back takes longer. In us, on a processor, on one that is
// emulated, in a machine whose calls are slow: call .1 .45 1.0; yield alone .2 .9 1.4; beside
// another thread from 1.5, 4, 4.4 on. Other threads may be ready while this measures; hence the
// bound.
std::uint64_t measure_shared_core_yield() noexcept {
    constexpr int calls = 16;
    constexpr std::uint64_t reading_clock_ns = 400;
    std::uint64_t call_ns = most_ns, yield_ns = most_ns;
    for (int i = 0; i < calls; ++i) {
        const std::uint64_t begun = now_ns();
        ::syscall(SYS_getppid);
        const std::uint64_t called = now_ns();
        ::syscall(SYS_sched_yield);  // not by its name, which simulated nodes take
        call_ns = std::min(call_ns, called - begun);
        yield_ns = std::min(yield_ns, now_ns() - called);
    }
    const std::uint64_t alone_ns = std::min(yield_ns, call_ns * 5 / 2);
    return std::clamp(2 * alone_ns + reading_clock_ns, usual_ns, most_ns);
}
}  // namespace

std::uint64_t shared_core_yield_ns() noexcept {
    // Simulated threads share no core, and reading their clock takes some of their time: of the
    // first simulated program of a process alone.
    if (turns_of_this_thread() != nullptr) return usual_ns;
    static const std::uint64_t found = measure_shared_core_yield();
    return found;
}

}  // namespace hiroba::net
