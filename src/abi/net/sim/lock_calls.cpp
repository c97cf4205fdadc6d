// SPDX-License-Identifier: BSD-3-Clause
// Role: mutexes, conditions, read-write locks and futexes for simulated threads, over
// Job::wait_at(). Threads take turns, so each call is one step; a mutex knows its owner by the
// simulated thread, where libc would take all threads for the one that runs them.
//
// The objects are the program's, in libc's layout, perhaps initialized statically: a mutex keeps
// its kind where libc has it. An object belongs to simulated threads or to others for its whole
// life, as libraries are initialized before the simulation and the program is in it.
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "abi/net/sim/job.hpp"
#include "abi/net/sim/virtual_time.hpp"

#define HIROBA_PUBLIC extern "C" [[gnu::visibility("default")]]

namespace hiroba::abi::sim {
namespace {

constexpr std::uint64_t forever = net::Simulation::forever;

int kind_of(const pthread_mutex_t& mutex) { return mutex.__data.__kind & 3; }
int owner_here(Job& job) { return static_cast<int>(job.simulation().thread()) + 1; }

/// Nothing: the mutex is another thread's, or its own without a kind that allows that.
std::optional<int> try_lock(Job& job, pthread_mutex_t& mutex) {
    auto& state = mutex.__data;
    if (state.__lock == 0) {
        state.__lock = 1;
        state.__owner = owner_here(job);
        state.__count = 1;
        return 0;
    }
    if (state.__owner != owner_here(job) || kind_of(mutex) != PTHREAD_MUTEX_RECURSIVE)
        return std::nullopt;
    ++state.__count;
    return 0;
}

int lock(Job& job, pthread_mutex_t& mutex, std::uint64_t deadline_ns) {
    while (true) {
        if (const auto done = try_lock(job, mutex)) return *done;
        const bool own = mutex.__data.__owner == owner_here(job);
        if (own && kind_of(mutex) == PTHREAD_MUTEX_ERRORCHECK) return EDEADLK;
        if (!job.wait_at(&mutex, deadline_ns)) return ETIMEDOUT;
    }
}

int unlock(Job& job, pthread_mutex_t& mutex) {
    auto& state = mutex.__data;
    const bool checks =
        kind_of(mutex) == PTHREAD_MUTEX_RECURSIVE || kind_of(mutex) == PTHREAD_MUTEX_ERRORCHECK;
    if (checks && state.__owner != owner_here(job)) return EPERM;
    if (--state.__count > 0) return 0;
    state.__lock = state.__owner = 0;
    state.__count = 0;
    job.wake_at(&mutex, 1);
    return 0;
}

int wait(Job& job, pthread_cond_t& condition, pthread_mutex_t& mutex, std::uint64_t deadline_ns) {
    // No other thread has a turn between the two: no signal is lost.
    const unsigned count = mutex.__data.__count;
    mutex.__data.__count = 1;
    if (const int failed = unlock(job, mutex); failed != 0) return failed;
    const bool woken = job.wait_at(&condition, deadline_ns);
    lock(job, mutex, forever);
    mutex.__data.__count = count;
    return woken ? 0 : ETIMEDOUT;
}

/// A pthread_rwlock_t as it is used here; all zeros: free.
struct ReadWriteLock {
    std::uint32_t readers;
    std::uint32_t written;
};
static_assert(sizeof(ReadWriteLock) <= sizeof(pthread_rwlock_t));
ReadWriteLock& in(pthread_rwlock_t* lock) { return *reinterpret_cast<ReadWriteLock*>(lock); }

int lock_shared(Job& job, pthread_rwlock_t* lock, bool waits) {
    while (in(lock).written != 0) {
        if (!waits) return EBUSY;
        job.wait_at(lock);
    }
    ++in(lock).readers;
    return 0;
}

int lock_alone(Job& job, pthread_rwlock_t* lock, bool waits) {
    while (in(lock).written != 0 || in(lock).readers != 0) {
        if (!waits) return EBUSY;
        job.wait_at(lock);
    }
    in(lock).written = 1;
    return 0;
}

/// The clock of pthread_cond_timedwait(), as pthread_condattr_setclock() chose it: bit 1 of
/// libc's flags.
clockid_t clock_of(const pthread_cond_t& condition) {
    return (condition.__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/// FUTEX_WAIT and FUTEX_WAKE, with which the C++ library's atomics and guards wait.
long call_futex(Job& job, std::uint32_t* word, int operation, std::uint32_t value,
                const timespec* timeout) {
    const int command = operation & FUTEX_CMD_MASK;
    if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) return job.wake_at(word, value);
    if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) return errno = ENOSYS, -1;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) return errno = EAGAIN, -1;
    std::uint64_t deadline_ns = forever;
    if (timeout != nullptr) {
        const bool from_1970 = (operation & FUTEX_CLOCK_REALTIME) != 0;
        deadline_ns = command == FUTEX_WAIT
                          ? job.simulation().now_ns() + ns_of(*timeout)
                          : virtual_ns(from_1970 ? CLOCK_REALTIME : CLOCK_MONOTONIC, *timeout);
    }
    if (job.wait_at(word, deadline_ns)) return 0;
    return errno = ETIMEDOUT, -1;
}

}  // namespace
}  // namespace hiroba::abi::sim

using namespace hiroba::abi::sim;

// --- mutexes -------------------------------------------------------------------------------------

HIROBA_PUBLIC int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    if (Job* const job = job_here()) return lock(*job, *mutex, forever);
    return real<int(pthread_mutex_t*)>("pthread_mutex_lock")(mutex);
}

HIROBA_PUBLIC int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
    if (Job* const job = job_here()) return try_lock(*job, *mutex).value_or(EBUSY);
    return real<int(pthread_mutex_t*)>("pthread_mutex_trylock")(mutex);
}

HIROBA_PUBLIC int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                          const timespec* until) noexcept {
    if (Job* const job = job_here()) return lock(*job, *mutex, virtual_ns(clock, *until));
    return real<int(pthread_mutex_t*, clockid_t, const timespec*)>("pthread_mutex_clocklock")(
        mutex, clock, until);
}

HIROBA_PUBLIC int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
    if (job_here() != nullptr) return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, until);
    return real<int(pthread_mutex_t*, const timespec*)>("pthread_mutex_timedlock")(mutex, until);
}

HIROBA_PUBLIC int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    if (Job* const job = job_here()) return unlock(*job, *mutex);
    return real<int(pthread_mutex_t*)>("pthread_mutex_unlock")(mutex);
}

// --- conditions ----------------------------------------------------------------------------------

HIROBA_PUBLIC int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    if (Job* const job = job_here()) return wait(*job, *condition, *mutex, forever);
    return real<decltype(pthread_cond_wait)>("pthread_cond_wait")(condition, mutex);
}

HIROBA_PUBLIC int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                         clockid_t clock, const timespec* until) {
    Job* const job = job_here();
    if (job != nullptr) return wait(*job, *condition, *mutex, virtual_ns(clock, *until));
    using Wait = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
    return real<Wait>("pthread_cond_clockwait")(condition, mutex, clock, until);
}

HIROBA_PUBLIC int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                         const timespec* until) {
    if (job_here() != nullptr)
        return pthread_cond_clockwait(condition, mutex, clock_of(*condition), until);
    using Wait = int(pthread_cond_t*, pthread_mutex_t*, const timespec*);
    return real<Wait>("pthread_cond_timedwait")(condition, mutex, until);
}

HIROBA_PUBLIC int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    Job* const job = job_here();
    if (job == nullptr) return real<int(pthread_cond_t*)>("pthread_cond_signal")(condition);
    job->wake_at(condition, 1);
    return 0;
}

HIROBA_PUBLIC int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    Job* const job = job_here();
    if (job == nullptr) return real<int(pthread_cond_t*)>("pthread_cond_broadcast")(condition);
    job->wake_at(condition);
    return 0;
}

// --- read-write locks ----------------------------------------------------------------------------

HIROBA_PUBLIC int pthread_rwlock_rdlock(pthread_rwlock_t* it) noexcept {
    if (Job* const job = job_here()) return lock_shared(*job, it, true);
    return real<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock")(it);
}

HIROBA_PUBLIC int pthread_rwlock_tryrdlock(pthread_rwlock_t* it) noexcept {
    if (Job* const job = job_here()) return lock_shared(*job, it, false);
    return real<int(pthread_rwlock_t*)>("pthread_rwlock_tryrdlock")(it);
}

HIROBA_PUBLIC int pthread_rwlock_wrlock(pthread_rwlock_t* it) noexcept {
    if (Job* const job = job_here()) return lock_alone(*job, it, true);
    return real<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock")(it);
}

HIROBA_PUBLIC int pthread_rwlock_trywrlock(pthread_rwlock_t* it) noexcept {
    if (Job* const job = job_here()) return lock_alone(*job, it, false);
    return real<int(pthread_rwlock_t*)>("pthread_rwlock_trywrlock")(it);
}

HIROBA_PUBLIC int pthread_rwlock_unlock(pthread_rwlock_t* it) noexcept {
    Job* const job = job_here();
    if (job == nullptr) return real<int(pthread_rwlock_t*)>("pthread_rwlock_unlock")(it);
    if (in(it).written != 0) {
        in(it).written = 0;
    } else {
        --in(it).readers;
    }
    if (in(it).readers == 0) job->wake_at(it);
    return 0;
}

// --- the kernel's own ----------------------------------------------------------------------------

HIROBA_PUBLIC long syscall(long number, ...) noexcept {
    va_list rest;
    va_start(rest, number);
    long word[6];
    for (long& each : word) each = va_arg(rest, long);
    va_end(rest);
    Job* const job = job_here();
    if (job != nullptr && number == SYS_futex) {
        return call_futex(*job, reinterpret_cast<std::uint32_t*>(word[0]),
                          static_cast<int>(word[1]), static_cast<std::uint32_t>(word[2]),
                          reinterpret_cast<const timespec*>(word[3]));
    }
    return real<long(long, ...)>("syscall")(number, word[0], word[1], word[2], word[3], word[4],
                                            word[5]);
}
