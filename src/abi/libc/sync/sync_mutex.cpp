// SPDX-License-Identifier: BSD-3-Clause
// Role: pthread mutexes and spin locks, over all nodes where they lie in global memory.
// Invariant: a mutex's type is what its bytes say, so that PTHREAD_MUTEX_INITIALIZER and friends
// make one; a spin lock is a mutex whose waiters do not burn their processor. A mutex that knows no
// owner is a lock as OpenMP's are, which stays at the node that uses it.
#include <pthread.h>

#include <algorithm>

#include "abi/libc/real.hpp"
#include "abi/libc/sync/runtime_mutexes.hpp"
#include "abi/libc/sync/sync_objects.hpp"
#include "base/fatal.hpp"
#include "omp/team/told_apart.hpp"

HIROBA_REAL(pthread_mutex_init);
HIROBA_REAL(pthread_mutex_destroy);
HIROBA_REAL(pthread_mutex_lock);
HIROBA_REAL(pthread_mutex_trylock);
HIROBA_REAL(pthread_mutex_timedlock);
HIROBA_REAL(pthread_mutex_clocklock);
HIROBA_REAL(pthread_mutex_unlock);
HIROBA_REAL(pthread_spin_init);
HIROBA_REAL(pthread_spin_destroy);
HIROBA_REAL(pthread_spin_lock);
HIROBA_REAL(pthread_spin_trylock);
HIROBA_REAL(pthread_spin_unlock);

namespace hiroba::abi {

void refuse_object(const char* what, const volatile void* object) noexcept {
    die(exit_environment,
        "%s at 0x%lx: not supported on several nodes. Use a plain one, or one node (-n 1)", what,
        key_of(object));
}

namespace {

// Bits of the kind in a mutex's bytes beside its type (glibc: nptl/pthreadP.h).
constexpr int type_bits = 3, robust_bit = 16, shared_bit = 128;

dsm::MutexType type_of(const pthread_mutex_t* mutex) noexcept {
    const int kind = mutex->__data.__kind;
    if ((kind & robust_bit) != 0) refuse_object("robust mutex", mutex);
    if ((kind & shared_bit) != 0) refuse_object("process-shared mutex", mutex);
    switch (kind & type_bits) {
        case PTHREAD_MUTEX_RECURSIVE: return dsm::MutexType::recursive;
        case PTHREAD_MUTEX_ERRORCHECK: return dsm::MutexType::errorcheck;
        default: return dsm::MutexType::normal;
    }
}

/// A thread in the queue of such a lock cannot leave it again, so one with a deadline looks from
/// time to time.
int try_plain_until(dsm::LockKey key, const dsm::Deadline& deadline) noexcept {
    constexpr std::uint64_t pause_first_ns = 4'000, pause_max_ns = 500'000;
    for (std::uint64_t pause_ns = pause_first_ns; !world()->locks->try_lock(key);
         pause_ns = std::min(2 * pause_ns, pause_max_ns)) {
        const std::uint64_t left_ns = deadline.left_ns();
        if (left_ns == 0) return ETIMEDOUT;
        const timespec pause{0, static_cast<long>(std::min(pause_ns, left_ns))};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    }
    return 0;
}

int lock_plain(const volatile void* object, dsm::Waiting waiting) noexcept {
    const dsm::LockKey key = key_of(object);
    if (!waiting.allowed) return world()->locks->try_lock(key) ? 0 : EBUSY;
    if (waiting.deadline != nullptr) return try_plain_until(key, *waiting.deadline);
    world()->locks->lock(key);
    return 0;
}

/// libc, too, says nothing where no thread holds it.
int unlock_plain(const volatile void* object,
                 dsm::LockTable::Then then = dsm::LockTable::Then::goes_on) noexcept {
    world()->locks->unlock_if_held(key_of(object), then);
    return 0;
}

int lock(dsm::SyncTable& table, pthread_mutex_t* mutex, dsm::Waiting waiting) noexcept {
    const dsm::MutexType type = type_of(mutex);
    if (type == dsm::MutexType::normal) return lock_plain(mutex, waiting);
    const int error = error_of(table.lock_mutex(key_of(mutex), type, waiting));
    if (error == 0) ++omp::owned_locks;
    return error;
}

int lock_until(dsm::SyncTable& table, pthread_mutex_t* mutex, clockid_t clock,
               const timespec* time) noexcept {
    const dsm::Deadline deadline{clock, *time};
    // As in libc, a time that is none matters only to a thread that has to wait.
    const int error = lock(table, mutex, {is_time(*time), &deadline});
    return error == EBUSY ? EINVAL : error;
}

void refuse_attributes(const pthread_mutexattr_t* attributes, const pthread_mutex_t* mutex) {
    int robust = PTHREAD_MUTEX_STALLED;
    int shared = PTHREAD_PROCESS_PRIVATE;
    pthread_mutexattr_getrobust(attributes, &robust);
    pthread_mutexattr_getpshared(attributes, &shared);
    if (robust != PTHREAD_MUTEX_STALLED) refuse_object("robust mutex", mutex);
    if (shared != PTHREAD_PROCESS_PRIVATE) refuse_object("process-shared mutex", mutex);
}

}  // namespace

void unlock_to_sleep(pthread_mutex_t* mutex) noexcept {
    if (table_of(mutex) != nullptr && type_of(mutex) == dsm::MutexType::normal)
        unlock_plain(mutex, dsm::LockTable::Then::sleeps);
    else
        pthread_mutex_unlock(mutex);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;
using hiroba::dsm::MutexType;

#pragma GCC visibility push(default)
extern "C" {

int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) noexcept {
    if (table_of(mutex) != nullptr && attributes != nullptr) refuse_attributes(attributes, mutex);
    return real_pthread_mutex_init(mutex, attributes);
}

int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept {
    auto* const table = table_of(mutex);
    if (table == nullptr) return real_pthread_mutex_destroy(mutex);
    const bool is_held = type_of(mutex) == MutexType::normal
                             ? world()->locks->is_held(key_of(mutex))
                             : table->is_mutex_held(key_of(mutex));
    return is_held ? EBUSY : 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    if (auto* const table = table_of(mutex)) return lock(*table, mutex, {});
    if (takes_runtime_mutex(mutex, __builtin_return_address(0)))
        return lock(*world()->sync, mutex, {});
    return real_pthread_mutex_lock(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
    auto* const table = table_of(mutex);
    return table != nullptr ? lock(*table, mutex, {false}) : real_pthread_mutex_trylock(mutex);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) noexcept {
    auto* const table = table_of(mutex);
    if (table == nullptr) return real_pthread_mutex_timedlock(mutex, time);
    return lock_until(*table, mutex, CLOCK_REALTIME, time);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                            const timespec* time) noexcept {
    auto* const table = table_of(mutex);
    if (table == nullptr) return real_pthread_mutex_clocklock(mutex, clock, time);
    return is_clock(clock) ? lock_until(*table, mutex, clock, time) : EINVAL;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    auto* table = table_of(mutex);
    if (table == nullptr && is_runtime_mutex(mutex)) table = world()->sync.get();
    if (table == nullptr) return real_pthread_mutex_unlock(mutex);
    const MutexType type = type_of(mutex);
    if (type == MutexType::normal) return unlock_plain(mutex);
    const int error = error_of(table->unlock_mutex(key_of(mutex), type));
    if (error == 0) --hiroba::omp::owned_locks;
    return error;
}

int pthread_spin_init(pthread_spinlock_t* spin, int shared) noexcept {
    return real_pthread_spin_init(spin, shared);
}

int pthread_spin_destroy(pthread_spinlock_t* spin) noexcept {
    return table_of(spin) != nullptr ? 0 : real_pthread_spin_destroy(spin);
}

int pthread_spin_lock(pthread_spinlock_t* spin) noexcept {
    auto* const table = table_of(spin);
    if (table == nullptr) return real_pthread_spin_lock(spin);
    return lock_plain(spin, {});
}

int pthread_spin_trylock(pthread_spinlock_t* spin) noexcept {
    auto* const table = table_of(spin);
    if (table == nullptr) return real_pthread_spin_trylock(spin);
    return lock_plain(spin, {false});
}

int pthread_spin_unlock(pthread_spinlock_t* spin) noexcept {
    auto* const table = table_of(spin);
    if (table == nullptr) return real_pthread_spin_unlock(spin);
    return unlock_plain(spin);
}

}  // extern "C"
