// SPDX-License-Identifier: BSD-3-Clause
// Role: see single_turn.hpp. Stores that the first thread makes at once in a `single nowait` must
// not be overtaken by what its neighbours do behind it. Between its answer and its store lie a few
// instructions on one host. Here a fault lies between, whose signal takes microseconds before
// any thread can know of it, and the kernel may take the processor away meanwhile. No node compares
// two threads of one node (docs/protocol.md#before-own), so none would tell.
#include "omp/team/single_turn.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstring>

#include "base/atomic_window.hpp"
#include "base/clock.hpp"
#include "base/latch.hpp"
#include "base/turns.hpp"
#include "dsm/dsm.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::omp {

namespace {
/// A signal's way to its handler, and the way back to the store, by far: both wait for locks of the
/// kernel's at times.
constexpr std::uint64_t step_ns = 30'000;
/// The longest that a thread waits here for one that sleeps,
constexpr std::uint64_t asleep_max_ns = 5'000'000;
/// or for one that is kept from its store: by others that have its processor, some slices of theirs
/// each time, or by a fault.
constexpr std::uint64_t wait_max_ns = 500'000'000;
constexpr std::uint64_t between_looks_ns = 1'000'000;

/// Processor time that the thread has used; past every step where that is not known.
std::uint64_t computed_ns(clockid_t clock) noexcept {
    timespec time{};
    if (clock_gettime(clock, &time) != 0) return ~std::uint64_t{0};
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

/// Whether the thread of that clock waits for a processor, or for the kernel itself. False where
/// that is not known.
bool wants_processor(clockid_t clock) noexcept {
    // As pthread_getcpuclockid() makes it of the thread's number.
    const int thread = ~(clock >> 3);
    char path[64], text[256];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    const long file = dsm::kernel_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return false;
    const long bytes = dsm::kernel_call(SYS_read, file, text, sizeof text - 1);
    dsm::kernel_call(SYS_close, file);
    if (bytes <= 0) return false;
    text[bytes] = 0;
    // Behind its name, which may hold anything.
    const char* const name_end = std::strrchr(text, ')');
    return name_end != nullptr && (name_end[2] == 'R' || name_end[2] == 'D');
}
}  // namespace

void SingleTurn::won(std::uint64_t sequence) noexcept {
    ThreadContext& thread = this_thread();
    own_.store(sequence + 1, std::memory_order_relaxed);  // published by the last line
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
        clock_.store(clock, std::memory_order_relaxed);
        first_.store(&thread, std::memory_order_relaxed);
        thread.goes_first = &first_;
        note_next_atomic();
    }
    asking_.fetch_sub(1, std::memory_order_release);  // pairs with lost() and is_own_since()
}

void SingleTurn::lost() noexcept {
    asking_.fetch_sub(1, std::memory_order_release);  // pairs with the line below
    Backoff backoff;
    while (asking_.load(std::memory_order_acquire) != 0) backoff.pause();
    let_first_go();
}

bool SingleTurn::is_own_since(std::uint64_t sequence) noexcept {
    Backoff backoff;
    // Acquire: pairs with won().
    while (asking_.load(std::memory_order_acquire) != 0) backoff.pause();
    return own_.load(std::memory_order_acquire) > sequence;
}

void SingleTurn::let_first_go() noexcept {
    ThreadContext* const first = first_.load(std::memory_order_acquire);
    if (first == nullptr || first == &this_thread() || turns_of_this_thread() != nullptr) return;
    const clockid_t clock = clock_.load(std::memory_order_relaxed);
    const std::uint64_t begin = now_ns();
    std::uint64_t computed = computed_ns(clock);
    std::uint64_t look_at_ns = begin + asleep_max_ns;
    Backoff backoff;
    // Acquire: pairs with end_going_first().
    while (first_.load(std::memory_order_acquire) == first) {
        backoff.pause();
        const std::uint64_t now = computed_ns(clock);
        // A fault ends before the store that it was for.
        if (dsm::resolves_fault(*first)) {
            computed = now;
        } else if (now - computed >= step_ns) {
            return;
        } else if (now_ns() >= look_at_ns) {
            if (!wants_processor(clock)) return;
            look_at_ns = now_ns() + between_looks_ns;
        }
        if (now_ns() - begin >= wait_max_ns) return;
    }
}

}  // namespace hiroba::omp
