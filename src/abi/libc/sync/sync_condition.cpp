// SPDX-License-Identifier: BSD-3-Clause
// Role: pthread condition variables, over all nodes where they or their mutex are.
// Invariant: a waiter is in the list before it gives up the mutex. A condition variable in private
// memory (a local of a thread the program made) whose mutex is global cannot be waited for by libc;
// it is ours as well, under a name that no other node's has.
#include <pthread.h>

#include <atomic>

#include "abi/libc/real.hpp"
#include "abi/libc/sync/sync_objects.hpp"
#include "abi/libc/threads/cancellation.hpp"

HIROBA_REAL(pthread_cond_init);
HIROBA_REAL(pthread_cond_destroy);
HIROBA_REAL(pthread_cond_wait);
HIROBA_REAL(pthread_cond_timedwait);
HIROBA_REAL(pthread_cond_clockwait);
HIROBA_REAL(pthread_cond_signal);
HIROBA_REAL(pthread_cond_broadcast);

namespace hiroba::abi {
namespace {

/// Bits of __wrefs (glibc: nptl/pthreadP.h).
constexpr unsigned shared_bit = 1, monotonic_bit = 2;

/// Waits on private condition variables with a global mutex; 0 in nearly all programs.
constinit std::atomic<std::uint32_t> mixed_waits{0};

clockid_t clock_of(const pthread_cond_t* condition) noexcept {
    return (condition->__data.__wrefs & monotonic_bit) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

dsm::SyncKey private_key(const pthread_cond_t* condition) noexcept {
    constexpr unsigned address_bits = 48;
    return std::uint64_t{world()->job.self.value + 1} << address_bits | key_of(condition);
}

bool may_give_up(pthread_mutex_t* mutex, const dsm::SyncTable* mutex_table) noexcept {
    if (mutex_table == nullptr) return true;
    const int type = mutex->__data.__kind & 3;
    const bool checked = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
    return !checked || world()->sync->is_mutex_mine(key_of(mutex));
}

int wait(dsm::SyncKey key, pthread_mutex_t* mutex, const dsm::Deadline* deadline) {
    dsm::SyncTable& table = *world()->sync;
    dsm::Deadline until = deadline != nullptr ? *deadline : no_deadline;
    const bool is_point = may_be_cancelled();
    const CancellableCall call{is_point, &until};
    call.begin();
    const dsm::SyncWaiter waiter = table.join_condition(key);
    unlock_to_sleep(mutex);
    const dsm::SyncOutcome outcome =
        table.await_condition(key, waiter, is_point ? &until : deadline);
    call.end();
    pthread_mutex_lock(mutex);
    if (outcome != dsm::SyncOutcome::timed_out || !is_point) return error_of(outcome);
    end_cancellation_point();
    const bool is_late = deadline != nullptr && deadline->left_ns() == 0;
    return is_late ? ETIMEDOUT : 0;  // woken for nothing
}

/// False: libc's.
bool wait_here(pthread_cond_t* condition, pthread_mutex_t* mutex, const dsm::Deadline* deadline,
               int* error) {
    const bool is_global = table_of(condition) != nullptr;
    const dsm::SyncTable* const mutex_table = table_of(mutex);
    if (!is_global && mutex_table == nullptr) return false;
    if (is_global && (condition->__data.__wrefs & shared_bit) != 0)
        refuse_object("process-shared condition variable", condition);
    if (deadline != nullptr && (!is_clock(deadline->clock) || !is_time(deadline->time))) {
        *error = EINVAL;
    } else if (!may_give_up(mutex, mutex_table)) {
        *error = EPERM;
    } else if (is_global) {
        *error = wait(key_of(condition), mutex, deadline);
    } else {
        mixed_waits.fetch_add(1);
        *error = wait(private_key(condition), mutex, deadline);
        mixed_waits.fetch_sub(1);
    }
    return true;
}

/// False: libc's too.
bool signal_here(pthread_cond_t* condition, bool everyone) noexcept {
    if (dsm::SyncTable* const table = table_of(condition)) {
        table->signal_condition(key_of(condition), everyone);
        return true;
    }
    if (mixed_waits.load() != 0) world()->sync->signal_condition(private_key(condition), everyone);
    return false;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;
using hiroba::dsm::Deadline;

#pragma GCC visibility push(default)
extern "C" {

int pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) noexcept {
    return real_pthread_cond_init(condition, attributes);
}

int pthread_cond_destroy(pthread_cond_t* condition) noexcept {
    // Threads that were woken no longer touch the condition variable.
    return table_of(condition) != nullptr ? 0 : real_pthread_cond_destroy(condition);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    int error = 0;
    if (wait_here(condition, mutex, nullptr, &error)) return error;
    return real_pthread_cond_wait(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* time) {
    int error = 0;
    const Deadline deadline{clock_of(condition), *time};
    if (wait_here(condition, mutex, &deadline, &error)) return error;
    return real_pthread_cond_timedwait(condition, mutex, time);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* time) {
    int error = 0;
    const Deadline deadline{clock, *time};
    if (wait_here(condition, mutex, &deadline, &error)) return error;
    return real_pthread_cond_clockwait(condition, mutex, clock, time);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    return signal_here(condition, false) ? 0 : real_pthread_cond_signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    return signal_here(condition, true) ? 0 : real_pthread_cond_broadcast(condition);
}

}  // extern "C"
