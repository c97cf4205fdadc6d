// SPDX-License-Identifier: BSD-3-Clause
// Role: C11's mutexes and condition variables: the same objects as POSIX's, with other words for
// how it went.
// Invariant: on one node, and in private memory, they are libc's.
#include <pthread.h>
#include <threads.h>

#include "abi/libc/real.hpp"
#include "abi/libc/sync/sync_objects.hpp"

HIROBA_REAL(mtx_lock);
HIROBA_REAL(mtx_timedlock);
HIROBA_REAL(mtx_trylock);
HIROBA_REAL(mtx_unlock);
HIROBA_REAL(mtx_destroy);
HIROBA_REAL(cnd_signal);
HIROBA_REAL(cnd_broadcast);
HIROBA_REAL(cnd_wait);
HIROBA_REAL(cnd_timedwait);
HIROBA_REAL(cnd_destroy);

namespace hiroba::abi {
namespace {

int told(int error) noexcept {
    switch (error) {
        case 0: return thrd_success;
        case EBUSY: return thrd_busy;
        case ETIMEDOUT: return thrd_timedout;
        default: return thrd_error;
    }
}

pthread_mutex_t* posix(mtx_t* mutex) noexcept { return reinterpret_cast<pthread_mutex_t*>(mutex); }
pthread_cond_t* posix(cnd_t* condition) noexcept {
    return reinterpret_cast<pthread_cond_t*>(condition);
}

bool is_ours(const mtx_t* mutex) noexcept { return table_of(mutex) != nullptr; }

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int mtx_lock(mtx_t* mutex) {
    return is_ours(mutex) ? told(pthread_mutex_lock(posix(mutex))) : real_mtx_lock(mutex);
}

int mtx_timedlock(mtx_t* __restrict mutex, const timespec* __restrict time) {
    if (!is_ours(mutex)) return real_mtx_timedlock(mutex, time);
    return told(pthread_mutex_timedlock(posix(mutex), time));
}

int mtx_trylock(mtx_t* mutex) {
    return is_ours(mutex) ? told(pthread_mutex_trylock(posix(mutex))) : real_mtx_trylock(mutex);
}

int mtx_unlock(mtx_t* mutex) {
    return is_ours(mutex) ? told(pthread_mutex_unlock(posix(mutex))) : real_mtx_unlock(mutex);
}

void mtx_destroy(mtx_t* mutex) {
    if (!is_ours(mutex)) real_mtx_destroy(mutex);
}

// libc's cnd_* call nothing that could be interposed, so where POSIX's would go to libc, so do we.

int cnd_signal(cnd_t* condition) { return told(pthread_cond_signal(posix(condition))); }

int cnd_broadcast(cnd_t* condition) { return told(pthread_cond_broadcast(posix(condition))); }

int cnd_wait(cnd_t* condition, mtx_t* mutex) {
    if (table_of(condition) == nullptr && !is_ours(mutex)) return real_cnd_wait(condition, mutex);
    return told(pthread_cond_wait(posix(condition), posix(mutex)));
}

int cnd_timedwait(cnd_t* __restrict condition, mtx_t* __restrict mutex,
                  const timespec* __restrict time) {
    if (table_of(condition) == nullptr && !is_ours(mutex))
        return real_cnd_timedwait(condition, mutex, time);
    return told(pthread_cond_timedwait(posix(condition), posix(mutex), time));
}

void cnd_destroy(cnd_t* condition) {
    if (table_of(condition) == nullptr) real_cnd_destroy(condition);
}

}  // extern "C"
