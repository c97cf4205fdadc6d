// SPDX-License-Identifier: BSD-3-Clause
// Role: which synchronization objects are ours, and how outcomes are told to C.
// Invariant: on several nodes an object in global memory is known by its address and its bytes are
// only read, for what the initializer says; all others are libc's business, as on one node.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cerrno>
#include <cstdint>

#include "abi/world.hpp"
#include "dsm/sync/sync_table.hpp"

namespace hiroba::abi {

/// Null when `object` is libc's.
inline dsm::SyncTable* table_of(const volatile void* object) noexcept {
    const World* const node = world();
    if (node == nullptr || node->memory == nullptr) return nullptr;
    return node->memory->contains(const_cast<const void*>(object)) ? node->sync.get() : nullptr;
}

inline dsm::SyncKey key_of(const volatile void* object) noexcept {
    return reinterpret_cast<std::uintptr_t>(object);
}

inline bool is_time(const timespec& time) noexcept {
    return time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000;
}
inline bool is_clock(clockid_t clock) noexcept {
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

inline int error_of(dsm::SyncOutcome outcome) noexcept {
    switch (outcome) {
        case dsm::SyncOutcome::done:
        case dsm::SyncOutcome::last: return 0;
        case dsm::SyncOutcome::busy: return EBUSY;
        case dsm::SyncOutcome::timed_out: return ETIMEDOUT;
        case dsm::SyncOutcome::deadlock: return EDEADLK;
        case dsm::SyncOutcome::not_owner: return EPERM;
        case dsm::SyncOutcome::overflow: return EAGAIN;
    }
    return EINVAL;
}

/// Before a wait on a condition variable.
void unlock_to_sleep(pthread_mutex_t* mutex) noexcept;

/// Ends the job: `what` at `object` cannot be had across nodes.
[[noreturn]] void refuse_object(const char* what, const volatile void* object) noexcept;

}  // namespace hiroba::abi
