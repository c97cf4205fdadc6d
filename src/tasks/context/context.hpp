// SPDX-License-Identifier: BSD-3-Clause
// Role: contexts of user-level threads: start a function on another stack, keep where this one was,
// go on there later, on any thread. What sanitizers must hear of it is told here.
// Invariant: a context is resumed once; a stack that is left for good is used no more by who left.
#pragma once

#include <cstddef>

#if defined(__x86_64__)
#include "tasks/context/x86_64/switch.hpp"
#else
#error "hiroba/tasks.hpp has no context switch for this processor: add one to src/tasks/context"
#endif

// The sanitizers' functions are null where the program has no sanitizer.
extern "C" void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom,
                                               std::size_t bytes) __attribute__((weak));
extern "C" void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom,
                                                std::size_t* bytes) __attribute__((weak));
extern "C" void* __tsan_get_current_fiber() __attribute__((weak));
extern "C" void* __tsan_create_fiber(unsigned flags) __attribute__((weak));
extern "C" void __tsan_destroy_fiber(void* fiber) __attribute__((weak));
extern "C" void __tsan_switch_to_fiber(void* fiber, unsigned flags) __attribute__((weak));

namespace hiroba::tasks {

/// Where a stack lies, and what the thread sanitizer knows it by.
struct StackPlace {
    std::byte* bottom = nullptr;
    std::size_t bytes = 0;
    void* fiber = nullptr;

    /// For a stack on which a new function starts: the former one's frames never return, which the
    /// sanitizer would count for ever.
    void renew_fiber() noexcept {
        if (__tsan_create_fiber == nullptr) return;
        if (fiber != nullptr) __tsan_destroy_fiber(fiber);
        fiber = __tsan_create_fiber(0);
    }
};

/// A function that stands still.
struct Context {
    void* stack_pointer = nullptr;
    void* fake_stack = nullptr;  ///< the address sanitizer's
    const StackPlace* place = nullptr;
};

/// Called on a fresh stack: does not return, or returns hand_back() of a context.
using Entered = void* (*)(void* argument);

/// Keeps this context in `save` and calls entry(argument) on `on`, whose first frame is below
/// `top`. Returns when `save` is resumed, perhaps on another thread.
/// @param own  the stack of the caller
inline void start(Context& save, const StackPlace& own, const StackPlace& on, void* top,
                  Entered entry, void* argument) noexcept {
    save.place = &own;
    if (__sanitizer_start_switch_fiber != nullptr)
        __sanitizer_start_switch_fiber(&save.fake_stack, on.bottom, on.bytes);
    if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(on.fiber, 0);
    hiroba_tasks_start(&save.stack_pointer, top, entry, argument);
    if (__sanitizer_finish_switch_fiber != nullptr)
        __sanitizer_finish_switch_fiber(save.fake_stack, nullptr, nullptr);
}

/// Leaves this stack for good and calls entry(argument) on `on`.
[[noreturn]] inline void leave_for(const StackPlace& on, void* top, Entered entry,
                                   void* argument) noexcept {
    if (__sanitizer_start_switch_fiber != nullptr)
        __sanitizer_start_switch_fiber(nullptr, on.bottom, on.bytes);
    if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(on.fiber, 0);
    void* nowhere = nullptr;
    hiroba_tasks_start(&nowhere, top, entry, argument);
    __builtin_unreachable();
}

/// First thing that a function on a fresh stack does. `came_from`: takes the bounds of the stack
/// that was left, as far as the address sanitizer knows them.
inline void arrive(StackPlace* came_from = nullptr) noexcept {
    if (__sanitizer_finish_switch_fiber == nullptr) return;
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
    if (came_from == nullptr) return;
    came_from->bottom = static_cast<std::byte*>(const_cast<void*>(bottom));
    came_from->bytes = bytes;
}

/// Leaves this stack for good and goes on at `to`.
[[noreturn]] inline void jump(const Context& to) noexcept {
    if (__sanitizer_start_switch_fiber != nullptr)
        __sanitizer_start_switch_fiber(nullptr, to.place->bottom, to.place->bytes);
    if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(to.place->fiber, 0);
    hiroba_tasks_jump(to.stack_pointer);
}

/// What an Entered function returns to go on at `to`, whose start() called it: cheaper than jump().
/// A sanitizer wants to hear of a switch from who leaves a stack for good.
inline void* hand_back(const Context& to) noexcept {
    if (__sanitizer_start_switch_fiber != nullptr || __tsan_switch_to_fiber != nullptr) jump(to);
    return to.stack_pointer;
}

}  // namespace hiroba::tasks
