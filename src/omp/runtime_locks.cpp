// SPDX-License-Identifier: BSD-3-Clause
// Role: critical sections and the program's locks.
// Invariant: on several nodes a lock's address is only a name; its bytes are never touched.
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "dsm/sync/lock_table.hpp"
#include "omp/runtime_core.hpp"
#include "omp/team/mutex_word.hpp"

namespace hiroba::omp {

std::uint32_t* RuntimeCore::lock_at(std::uint64_t key) noexcept {
    return key < own_locks_.size() ? &own_locks_[key].word : reinterpret_cast<std::uint32_t*>(key);
}

void RuntimeCore::lock(std::uint64_t key) noexcept {
    if (link_ == nullptr)
        lock_word(lock_at(key));
    else
        parts_.locks->lock(key);
}

bool RuntimeCore::try_lock(std::uint64_t key) noexcept {
    if (link_ == nullptr) return try_lock_word(lock_at(key));
    bool locked = false;
    on_runtime_stack([this, key, &locked] { locked = parts_.locks->try_lock(key); });
    return locked;
}

void RuntimeCore::unlock(std::uint64_t key) noexcept {
    if (link_ == nullptr)
        unlock_word(lock_at(key));
    else
        on_runtime_stack([this, key] { parts_.locks->unlock(key); });
}

void RuntimeCore::forget_lock(std::uint64_t key) noexcept {
    if (link_ != nullptr) parts_.locks->forget(key);
}

// A region of one thread is a task of its own, with a frame of its own: what the task around it
// holds it does not.
std::uint32_t RuntimeCore::lock_nested(std::uint64_t key) noexcept {
    ThreadState& thread = self();
    std::uint32_t& count = thread.holds.of(key, thread.frame);
    if (count == 0) lock(key);
    return ++count;
}

std::uint32_t RuntimeCore::try_lock_nested(std::uint64_t key) noexcept {
    ThreadState& thread = self();
    std::uint32_t& count = thread.holds.of(key, thread.frame);
    if (count == 0 && !try_lock(key)) return 0;
    return ++count;
}

void RuntimeCore::unlock_nested(std::uint64_t key) noexcept {
    std::uint32_t* const count = self().holds.held(key);
    if (count == nullptr)
        die(exit_environment,
            "omp_unset_nest_lock of the lock at 0x%lx, which the calling thread does not hold",
            static_cast<unsigned long>(key));
    if (--*count == 0) unlock(key);
}

}  // namespace hiroba::omp
