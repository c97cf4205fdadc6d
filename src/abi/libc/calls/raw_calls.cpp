// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes the functions of libc that are a bare system call and that this library itself
// uses to wait: made here, they are code that is not examined.
// Invariant: as libc's: -1 and errno, or the error number where libc returns that.
#include <sched.h>
#include <stdarg.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/memory/memory_calls.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/sync/futexes.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"

HIROBA_REAL(syscall);

using namespace hiroba;
using namespace hiroba::abi;

namespace {

/// Calls that return twice, or that change the mask a signal frame would restore: where libc makes
/// them they are examined, and treated, as such.
bool is_for_trap(long number) noexcept {
    return number == SYS_clone || number == SYS_clone3 || number == SYS_fork ||
           number == SYS_vfork || number == SYS_rt_sigprocmask || number == SYS_rt_sigreturn;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

long syscall(long number, ...) noexcept {
    va_list list;
    va_start(list, number);
    long a[6];
    for (long& word : a) word = va_arg(list, long);
    va_end(list);
    if (number != SYS_futex) note_kept_by_caller(HIROBA_CALLER);  // by its own number, say
    if (HIROBA_CALL_OF_PROGRAM()) {
        if (is_global_futex(number, a)) return as_libc(perform_futex(number, a));
        if (is_system_wait(number, a, HIROBA_CALLER)) return as_libc(perform_system_wait(a));
    }
    if (const auto done = perform_memory_call(number, a, HIROBA_CALLER)) return *done;
    if (is_for_trap(number) && !is_own_code(HIROBA_CALLER)) {
        return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    return call_to_end_from(HIROBA_CALLER, number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void* shmat(int segment, const void* address, int flags) noexcept {
    return reinterpret_cast<void*>(call_from(HIROBA_CALLER, SYS_shmat, segment, address, flags));
}

int sched_yield() noexcept { return static_cast<int>(call_from(HIROBA_CALLER, SYS_sched_yield)); }

int nanosleep(const timespec* wanted, timespec* left) {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_nanosleep, wanted, left));
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted, timespec* left) {
    const int errno_before = errno;
    if (call_from(HIROBA_CALLER, SYS_clock_nanosleep, clock, flags, wanted, left) == 0) {
        return 0;
    }
    const int error = errno;
    errno = errno_before;
    return error;
}

}  // extern "C"
