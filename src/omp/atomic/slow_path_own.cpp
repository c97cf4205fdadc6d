// SPDX-License-Identifier: BSD-3-Clause
// Role: the part of the slow path that comes before vectors are saved: an atomic on what is this
// node's alone. Called from assembly, on the program's stack.
// Invariant: the program's vector registers are live. As dsm/engine/node_own_atomic.cpp this is
// compiled for general registers alone, and calls nothing that is not.
#include <atomic>

#include "base/thread_context.hpp"
#include "omp/atomic/slow_path.hpp"
#include "omp/thread_part.hpp"

// extern "C" although this is no ABI: slow_path_entry.S calls these by name.
extern "C" {
[[gnu::visibility("hidden")]] bool hiroba_atomic_enter_own(
    void* address, const hiroba::omp::SiteRecord* site) noexcept;
[[gnu::visibility("hidden")]] bool hiroba_atomic_leave_own(
    void* address, const hiroba::omp::SiteRecord* site) noexcept;
}

/// Whether the section is entered. A region's last atomic may be its join's, and a sequential one
/// flushes.
[[gnu::flatten]] bool hiroba_atomic_enter_own(void* address,
                                              const hiroba::omp::SiteRecord* site) noexcept {
    const hiroba::omp::AtomicHooks& hooks = site->object->hooks;
    hiroba::ThreadContext* const thread = hiroba::this_thread_if_known();
    if (hooks.own.try_enter == nullptr || site->kind != hiroba::omp::SiteKind::atomic ||
        site->last || hooks.sequential || thread == nullptr ||
        hiroba::omp::thread_part(*thread).lacks_stores)
        return false;
    // Set until leave: a handler of the program that ran now could wait for what this thread holds.
    thread->in_runtime = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // The thread is to take no fault for its stack between here and leave().
    constexpr std::size_t below = 1024;
    std::byte* const lowest = static_cast<std::byte*>(__builtin_frame_address(0)) - below;
    asm volatile("movb $0, %0" : "=m"(*lowest));
    if (hooks.own.try_enter(hooks.own.context, address, site->operand_bytes)) {
        hiroba::omp::thread_part(*thread).announced.code = 0;
        return true;
    }
    thread->in_runtime = false;
    return false;
}

[[gnu::flatten]] bool hiroba_atomic_leave_own(void* address,
                                              const hiroba::omp::SiteRecord* site) noexcept {
    const hiroba::omp::AtomicHooks& hooks = site->object->hooks;
    if (hooks.own.try_leave == nullptr || hooks.sequential ||
        !hooks.own.try_leave(hooks.own.context, address, site->operand_bytes))
        return false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    hiroba::this_thread_if_known()->in_runtime = false;
    return true;
}
