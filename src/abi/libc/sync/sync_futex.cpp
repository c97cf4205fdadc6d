// SPDX-License-Identifier: BSD-3-Clause
// Role: futexes of the program in global memory (raw_calls.cpp interposes syscall()): what C++20
// makes of std::atomic::wait and its kin. The kernel compares and wakes by one node's copy, so the
// wait is ours: it looks again and again, each time after a flush. Other operations are refused.
// Invariant: a value is compared only after all that was flushed is known here, and the news of the
// value come with what was written ahead of it. What system libraries do with futexes (std::future)
// is between threads of one node, and left to the kernel.
#include <linux/futex.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "abi/libc/sync/sync_objects.hpp"
#include "base/fatal.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "omp/process/system_libraries.hpp"

namespace hiroba::abi {
namespace {

constexpr long pause_first_ns = 50'000, pause_max_ns = 2'000'000;
/// A wake need not change the value; a wait may end without cause.
constexpr int looks_max = 32;

/// Until when: FUTEX_WAIT names a duration, FUTEX_WAIT_BITSET a time.
dsm::Deadline deadline_of(int operation, const timespec& limit) noexcept {
    const bool real_time = (operation & FUTEX_CLOCK_REALTIME) != 0;
    timespec until = limit;
    const clockid_t clock = real_time ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT) {
        timespec now;
        clock_gettime(clock, &now);
        until.tv_sec += now.tv_sec + (until.tv_nsec + now.tv_nsec) / 1'000'000'000;
        until.tv_nsec = (until.tv_nsec + now.tv_nsec) % 1'000'000'000;
    }
    return {clock, until};
}

/// @return the error number, 0: woken, or so it seems
int wait_on(std::uint32_t& word, std::uint32_t expected, const dsm::Deadline* deadline) noexcept {
    long pause_ns = pause_first_ns;
    for (int look = 0; look < looks_max; ++look) {
        world()->memory->flush();
        if (std::atomic_ref{word}.load() != expected) return look == 0 ? EAGAIN : 0;
        const std::uint64_t left_ns = deadline == nullptr ? ~0ull : deadline->left_ns();
        if (left_ns == 0) return ETIMEDOUT;
        const timespec pause{0, static_cast<long>(std::min<std::uint64_t>(
                                    left_ns, static_cast<std::uint64_t>(pause_ns)))};
        // Not in the runtime: handlers of the program run meanwhile.
        if (dsm::kernel_call(SYS_nanosleep, &pause, 0) == -EINTR) return EINTR;
        pause_ns = std::min(2 * pause_ns, pause_max_ns);
    }
    return 0;
}

}  // namespace

bool is_program_futex(const void* word, void* caller) noexcept {
    return word != nullptr && table_of(word) != nullptr && !omp::is_system_code(caller);
}

long futex_of_program(const long (&arguments)[6]) noexcept {
    auto* const word = reinterpret_cast<std::uint32_t*>(arguments[0]);
    const int operation = static_cast<int>(arguments[1]);
    const auto* const limit = reinterpret_cast<const timespec*>(arguments[3]);
    switch (operation & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET: {
            dsm::Deadline deadline{};
            if (limit != nullptr) deadline = deadline_of(operation, *limit);
            const int error = wait_on(*word, static_cast<std::uint32_t>(arguments[2]),
                                      limit != nullptr ? &deadline : nullptr);
            if (error == 0) return 0;
            errno = error;
            return -1;
        }
        // Waiting threads are not counted: each looks again by itself.
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET: world()->memory->flush(); return 0;
        default:
            die(exit_environment,
                "futex at 0x%lx: operation %d is not to be had across nodes. Use mutexes and "
                "condition variables, or one node (-n 1)",
                key_of(word), operation & FUTEX_CMD_MASK);
    }
}

}  // namespace hiroba::abi
