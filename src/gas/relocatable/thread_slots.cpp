// SPDX-License-Identifier: BSD-3-Clause
// Role: see thread_slots.hpp.
#include "gas/relocatable/thread_slots.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/turns.hpp"

namespace hiroba::gas {

constinit thread_local ThreadSlot* this_slot = nullptr;

namespace {

ThreadSlot slots[slots_max];
std::atomic<std::size_t> slots_used{0};  ///< all behind were never taken

bool membarrier_works() noexcept {
    static const bool works =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return works;
}

/// Gives the thread's slot back when it ends.
struct Holder {
    ThreadSlot* slot = nullptr;
    ~Holder() {
        this_slot = nullptr;
        // Release, pairs with take(): the sums are there.
        if (slot != nullptr) slot->taken.store(false, std::memory_order_release);
    }
};
thread_local Holder holder;

ThreadSlot* take() noexcept {
    for (std::size_t i = 0; i < slots_max; ++i) {
        if (slots[i].taken.exchange(true, std::memory_order_acquire)) continue;
        std::size_t used = slots_used.load();
        while (used <= i && !slots_used.compare_exchange_weak(used, i + 1)) {
        }
        return &slots[i];
    }
    return nullptr;
}

}  // namespace

ThreadSlot* slot_of_this_thread() noexcept {
    if (holder.slot == nullptr && membarrier_works()) holder.slot = take();
    return holder.slot;
}

void fence_all_threads() noexcept {
    // Threads that take turns are one thread of the machine.
    if (turns_of_this_thread() != nullptr || !membarrier_works()) return;
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

std::span<ThreadSlot> thread_slots() noexcept { return {slots, slots_used.load()}; }

}  // namespace hiroba::gas
