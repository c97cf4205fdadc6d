// SPDX-License-Identifier: BSD-3-Clause
// Role: critical sections and the program's locks.
// Invariant: on several nodes a lock's address is only a name; its bytes are never touched.
#include "base/fatal.hpp"
#include "base/record.hpp"
#include "dsm/sync/lock_table.hpp"
#include "omp/runtime_core.hpp"
#include "omp/team/mutex_word.hpp"

namespace hiroba::omp {

std::uint32_t* RuntimeCore::lock_at(std::uint64_t key) noexcept {
    return key < own_locks_.size() ? &own_locks_[key].word : reinterpret_cast<std::uint32_t*>(key);
}

// Where there are program threads, members_here_ and helping_ may change meanwhile, and do not
// matter.
bool RuntimeCore::is_alone_here() const noexcept {
    return !link_->has_program_threads() && members_here_ == 1 && helping_ == 0;
}

// A lock that leaves a node whose only running thread unlocks it: one look at what was written
// suffices, since no thread writes behind it.
void RuntimeCore::release_for_lock(void* runtime) noexcept {
    auto& self = *static_cast<RuntimeCore*>(runtime);
    self.link_->release_in_program(self.is_alone_here());
}

// The same for a flush: it looks once if its thread alone runs here.
bool RuntimeCore::begin_standstill(void* runtime) noexcept {
    auto& self = *static_cast<RuntimeCore*>(runtime);
    return self.is_alone_here() && self.link_->begin_standstill();
}

void RuntimeCore::learn_unread(void* link) noexcept {
    static_cast<TeamLink*>(link)->learn_unread();
}

void RuntimeCore::end_standstill(void* runtime) noexcept {
    static_cast<RuntimeCore*>(runtime)->link_->end_standstill();
}

void RuntimeCore::lock(std::uint64_t key) noexcept {
    acquire_lost();
    const RecordedSpan recorded{RecordKind::lock, key, count_lock(), RecordedSpan::long_ticks};
    if (link_ == nullptr)
        lock_word(lock_at(key));
    else
        parts_.locks->lock(key);
}

bool RuntimeCore::try_lock(std::uint64_t key) noexcept {
    acquire_lost();
    if (link_ == nullptr) return try_lock_word(lock_at(key));
    return parts_.locks->try_lock(key);
}

void RuntimeCore::unlock(std::uint64_t key) noexcept {
    const RecordedSpan recorded{RecordKind::unlock, key, 0, RecordedSpan::long_ticks};
    if (link_ == nullptr)
        unlock_word(lock_at(key));
    else
        parts_.locks->unlock(key);
}

void RuntimeCore::forget_lock(std::uint64_t key) noexcept {
    if (link_ != nullptr) parts_.locks->forget(key);
}

// A lock belongs to a task: to an implicit one, which its frame stands for, or to an explicit one.
// It does not hold the locks that the task around it holds.
const void* RuntimeCore::holder(Frame& frame) noexcept {
    if (frame.inlined) return &current_task(frame);
    return frame.task == frame.implicit ? static_cast<const void*>(&frame) : frame.task;
}

std::uint32_t RuntimeCore::lock_nested(std::uint64_t key) noexcept {
    ThreadState& thread = self();
    std::uint32_t& count = thread.holds.of(key, holder(*thread.frame));
    if (count == 0) lock(key);
    return ++count;
}

std::uint32_t RuntimeCore::try_lock_nested(std::uint64_t key) noexcept {
    ThreadState& thread = self();
    std::uint32_t& count = thread.holds.of(key, holder(*thread.frame));
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
