// SPDX-License-Identifier: BSD-3-Clause
// Role: pthread read-write locks, over all nodes where they lie in global memory.
// Invariant: whether waiting writers keep readers out is what the lock's bytes say.
#include <pthread.h>

#include "abi/libc/real.hpp"
#include "abi/libc/sync/sync_objects.hpp"

HIROBA_REAL(pthread_rwlock_init);
HIROBA_REAL(pthread_rwlock_destroy);
HIROBA_REAL(pthread_rwlock_rdlock);
HIROBA_REAL(pthread_rwlock_tryrdlock);
HIROBA_REAL(pthread_rwlock_timedrdlock);
HIROBA_REAL(pthread_rwlock_clockrdlock);
HIROBA_REAL(pthread_rwlock_wrlock);
HIROBA_REAL(pthread_rwlock_trywrlock);
HIROBA_REAL(pthread_rwlock_timedwrlock);
HIROBA_REAL(pthread_rwlock_clockwrlock);
HIROBA_REAL(pthread_rwlock_unlock);

namespace hiroba::abi {
namespace {

constexpr auto shared = dsm::LockMode::shared, exclusive = dsm::LockMode::exclusive;

int lock(dsm::SyncTable& table, pthread_rwlock_t* rwlock, dsm::LockMode mode,
         dsm::Waiting waiting) noexcept {
    if (rwlock->__data.__shared != 0) refuse_object("process-shared read-write lock", rwlock);
    const bool writers_first =
        rwlock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
    return error_of(table.lock_rwlock(key_of(rwlock), mode, writers_first, waiting));
}

int lock_until(dsm::SyncTable& table, pthread_rwlock_t* rwlock, dsm::LockMode mode, clockid_t clock,
               const timespec* time) noexcept {
    if (!is_clock(clock) || !is_time(*time)) return EINVAL;
    const dsm::Deadline deadline{clock, *time};
    return lock(table, rwlock, mode, {true, &deadline});
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int pthread_rwlock_init(pthread_rwlock_t* rwlock, const pthread_rwlockattr_t* attributes) noexcept {
    return real_pthread_rwlock_init(rwlock, attributes);
}

int pthread_rwlock_destroy(pthread_rwlock_t* rwlock) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_destroy(rwlock);
    return table->is_rwlock_held(key_of(rwlock)) ? EBUSY : 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) noexcept {
    auto* const table = table_of(rwlock);
    return table != nullptr ? lock(*table, rwlock, shared, {}) : real_pthread_rwlock_rdlock(rwlock);
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* rwlock) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_tryrdlock(rwlock);
    return lock(*table, rwlock, shared, {false});
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* rwlock, const timespec* time) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_timedrdlock(rwlock, time);
    return lock_until(*table, rwlock, shared, CLOCK_REALTIME, time);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* rwlock, clockid_t clock,
                               const timespec* time) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_clockrdlock(rwlock, clock, time);
    return lock_until(*table, rwlock, shared, clock, time);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_wrlock(rwlock);
    return lock(*table, rwlock, exclusive, {});
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* rwlock) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_trywrlock(rwlock);
    return lock(*table, rwlock, exclusive, {false});
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* rwlock, const timespec* time) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_timedwrlock(rwlock, time);
    return lock_until(*table, rwlock, exclusive, CLOCK_REALTIME, time);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* rwlock, clockid_t clock,
                               const timespec* time) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_clockwrlock(rwlock, clock, time);
    return lock_until(*table, rwlock, exclusive, clock, time);
}

int pthread_rwlock_unlock(pthread_rwlock_t* rwlock) noexcept {
    auto* const table = table_of(rwlock);
    if (table == nullptr) return real_pthread_rwlock_unlock(rwlock);
    return error_of(table->unlock_rwlock(key_of(rwlock)));
}

}  // extern "C"
