// SPDX-License-Identifier: BSD-3-Clause
// Role: the small table of nested locks a thread holds.
// Invariant: an entry with count 0 is free.
#include "omp/team/thread_state.hpp"

#include "base/fatal.hpp"

namespace hiroba::omp {

std::uint32_t& NestedHolds::of(std::uint64_t key, const void* task) noexcept {
    Hold* free_hold = nullptr;
    for (Hold& hold : holds_) {
        if (hold.count != 0 && hold.key == key && hold.task == task) return hold.count;
        if (hold.count == 0 && free_hold == nullptr) free_hold = &hold;
    }
    if (free_hold == nullptr)
        die(exit_environment, "a thread holds %lu nestable locks at once; more are not supported",
            static_cast<unsigned long>(holds_max));
    free_hold->key = key;
    free_hold->task = task;
    return free_hold->count;
}

std::uint32_t* NestedHolds::held(std::uint64_t key) noexcept {
    for (Hold& hold : holds_)
        if (hold.count != 0 && hold.key == key) return &hold.count;
    return nullptr;
}

}  // namespace hiroba::omp
