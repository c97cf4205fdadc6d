// SPDX-License-Identifier: BSD-3-Clause
// Role: pthread barriers and POSIX semaphores without a name, over all nodes where they lie in
// global memory.
// Invariant: of the bytes libc's initializers write, only the numbers are read: the threads of a
// barrier, the first value of a semaphore.
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>

#include <cstring>

#include "abi/libc/real.hpp"
#include "abi/libc/sync/sync_objects.hpp"
#include "abi/libc/threads/cancellation.hpp"

HIROBA_REAL(pthread_barrier_init);
HIROBA_REAL(pthread_barrier_destroy);
HIROBA_REAL(pthread_barrier_wait);
HIROBA_REAL(sem_init);
HIROBA_REAL(sem_destroy);
HIROBA_REAL(sem_wait);
HIROBA_REAL(sem_trywait);
HIROBA_REAL(sem_timedwait);
HIROBA_REAL(sem_clockwait);
HIROBA_REAL(sem_post);
HIROBA_REAL(sem_getvalue);

namespace hiroba::abi {
namespace {

/// glibc: sysdeps/nptl/internaltypes.h.
struct BarrierBytes {
    std::uint32_t in, round, threads;
    std::int32_t shared;
    std::uint32_t out;
};
static_assert(sizeof(BarrierBytes) <= sizeof(pthread_barrier_t));

/// The low half of the first word is the value (glibc: struct new_sem).
std::uint32_t first_value(const sem_t* semaphore) noexcept {
    std::uint32_t value = 0;
    std::memcpy(&value, semaphore, sizeof value);
    return value;
}

int told(dsm::SyncOutcome outcome, int busy) noexcept {
    if (outcome == dsm::SyncOutcome::done) return 0;
    const bool is_full = outcome == dsm::SyncOutcome::overflow;
    errno = outcome == dsm::SyncOutcome::busy ? busy : is_full ? EOVERFLOW : error_of(outcome);
    return -1;
}

/// A cancellation point.
dsm::SyncOutcome take(dsm::SyncTable& table, sem_t* semaphore, dsm::Waiting waiting) {
    const bool is_point = may_be_cancelled();
    for (;;) {
        dsm::Deadline until = waiting.deadline != nullptr ? *waiting.deadline : no_deadline;
        const CancellableCall call{is_point, &until};
        call.begin();
        const dsm::SyncOutcome outcome =
            table.take_semaphore(key_of(semaphore), first_value(semaphore),
                                 {waiting.allowed, is_point ? &until : waiting.deadline});
        call.end();
        if (outcome != dsm::SyncOutcome::timed_out || !is_point) return outcome;
        end_cancellation_point();
        if (waiting.deadline != nullptr && waiting.deadline->left_ns() == 0) return outcome;
    }
}

int take_until(dsm::SyncTable& table, sem_t* semaphore, clockid_t clock, const timespec* time) {
    const dsm::Deadline deadline{clock, *time};
    // As in libc, a time that is none matters only to a thread that has to wait.
    return told(take(table, semaphore, {is_time(*time), &deadline}), EINVAL);
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;
using hiroba::dsm::SyncOutcome;

#pragma GCC visibility push(default)
extern "C" {

int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                         unsigned threads) noexcept {
    return real_pthread_barrier_init(barrier, attributes, threads);
}

int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
    auto* const table = table_of(barrier);
    if (table == nullptr) return real_pthread_barrier_destroy(barrier);
    return table->is_barrier_used(key_of(barrier)) ? EBUSY : 0;
}

int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
    auto* const table = table_of(barrier);
    if (table == nullptr) return real_pthread_barrier_wait(barrier);
    BarrierBytes bytes;
    std::memcpy(&bytes, barrier, sizeof bytes);
    if (bytes.shared != 0) refuse_object("process-shared barrier", barrier);
    const SyncOutcome outcome = table->pass_barrier(key_of(barrier), bytes.threads);
    return outcome == SyncOutcome::last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

int sem_init(sem_t* semaphore, int shared, unsigned value) noexcept {
    const int result = real_sem_init(semaphore, shared, value);
    auto* const table = table_of(semaphore);
    if (table != nullptr && result == 0) table->make_semaphore(key_of(semaphore), value);
    return result;
}

int sem_destroy(sem_t* semaphore) noexcept {
    auto* const table = table_of(semaphore);
    if (table == nullptr) return real_sem_destroy(semaphore);
    table->destroy_semaphore(key_of(semaphore));
    return 0;
}

int sem_wait(sem_t* semaphore) {
    auto* const table = table_of(semaphore);
    if (table == nullptr) return real_sem_wait(semaphore);
    return told(take(*table, semaphore, {}), EAGAIN);
}

int sem_trywait(sem_t* semaphore) noexcept {
    auto* const table = table_of(semaphore);
    if (table == nullptr) return real_sem_trywait(semaphore);
    return told(table->take_semaphore(key_of(semaphore), first_value(semaphore), {false}), EAGAIN);
}

int sem_timedwait(sem_t* semaphore, const timespec* time) {
    auto* const table = table_of(semaphore);
    if (table == nullptr) return real_sem_timedwait(semaphore, time);
    return take_until(*table, semaphore, CLOCK_REALTIME, time);
}

int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
    auto* const table = table_of(semaphore);
    if (table == nullptr) return real_sem_clockwait(semaphore, clock, time);
    if (is_clock(clock)) return take_until(*table, semaphore, clock, time);
    errno = EINVAL;
    return -1;
}

int sem_post(sem_t* semaphore) noexcept {
    auto* const table = table_of(semaphore);
    if (table == nullptr) return real_sem_post(semaphore);
    return told(table->post_semaphore(key_of(semaphore), first_value(semaphore)), EAGAIN);
}

int sem_getvalue(sem_t* semaphore, int* value) noexcept {
    auto* const table = table_of(semaphore);
    if (table == nullptr) return real_sem_getvalue(semaphore, value);
    *value = static_cast<int>(table->semaphore_value(key_of(semaphore), first_value(semaphore)));
    return 0;
}

}  // extern "C"
