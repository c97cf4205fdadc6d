// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/threads/thread_stacks.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <optional>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/memory/generated_code.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/world.hpp"
#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "omp/process/node_threads.hpp"

namespace hiroba::abi {

/// One thread's place. Made once, used by one thread after the other.
struct ThreadStack {
    ThreadStack* next = nullptr;  ///< fixed once in the list
    bool in_use = false;
    bool over = false;  ///< joined
    bool detached = false;
    bool is_ours = false;  ///< from the heap; else the program's, which it frees itself
    dsm::AddressRange range;
    std::size_t guard_bytes = 0;
    dsm::AddressRange alternate;
    std::atomic<pid_t> thread{0};  ///< 0: not yet running
};

namespace {

/// Beside what the program asks for: thread-local storage lies on the stack, and our entry points
/// need more than libc's.
constexpr std::size_t own_bytes = std::size_t{64} << 10;

constinit Latch list_latch;
constinit ThreadStack* list = nullptr;

bool has_left(const ThreadStack& stack) noexcept {
    if (stack.over) return true;
    const pid_t thread = stack.thread.load();
    if (!stack.detached || thread == 0) return false;
    const long process = dsm::kernel_call(SYS_getpid);
    return dsm::kernel_call(SYS_tgkill, process, thread, 0) == -ESRCH;
}

void give_up(ThreadStack& stack) noexcept {
    if (stack.range.bytes > 0) world()->memory->drop_stack(stack.range, stack.guard_bytes);
    if (stack.is_ours) give_back(reinterpret_cast<void*>(stack.range.address));
    stack.in_use = false;
}

/// With the latch. A place whose thread has left, or a new one.
ThreadStack* take_place() noexcept {
    ThreadStack* found = nullptr;
    for (ThreadStack* each = list; each != nullptr; each = each->next) {
        if (each->in_use && has_left(*each)) give_up(*each);
        if (!each->in_use) found = each;
    }
    if (found == nullptr) {
        found = new (std::nothrow) ThreadStack;
        if (found == nullptr) return nullptr;
        found->alternate = dsm::map_alternate_stack();
        found->next = list;
        list = found;
    }
    found->in_use = true;
    found->over = found->detached = found->is_ours = false;
    found->range = {};
    found->guard_bytes = 0;
    found->thread.store(0);
    return found;
}

/// The stack the program has put into the attributes; empty when it has put none.
dsm::AddressRange stack_of_program(const pthread_attr_t& attributes) noexcept {
    void* address = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &address, &bytes);
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    // Without one libc answers with an end of 0.
    return begin + bytes == 0 ? dsm::AddressRange{} : dsm::AddressRange{begin, bytes};
}

/// As the kernel's gap below main's stack: a page is stepped over by one large frame, and what
/// lies below is the program's heap. A program that asks for no guard gets none.
constexpr std::size_t guard_bytes_min = std::size_t{1} << 20;

bool allocate_stack(ThreadStack& stack, pthread_attr_t& attributes) noexcept {
    std::size_t asked_bytes = 0, guard_bytes = 0;
    pthread_attr_getstacksize(&attributes, &asked_bytes);
    pthread_attr_getguardsize(&attributes, &guard_bytes);
    const std::size_t block_bytes = world()->map->shape().block_bytes;
    if (guard_bytes > 0)
        guard_bytes = round_up(std::max(guard_bytes, guard_bytes_min), block_bytes);
    const std::size_t bytes = guard_bytes + round_up(asked_bytes + own_bytes, block_bytes);
    void* const memory = allocate_for_program(bytes, block_bytes, false);
    if (memory == nullptr) return false;
    stack.is_ours = true;
    stack.range = {reinterpret_cast<std::uintptr_t>(memory), bytes};
    stack.guard_bytes = guard_bytes;
    return pthread_attr_setstack(&attributes, static_cast<std::byte*>(memory) + guard_bytes,
                                 bytes - guard_bytes) == 0;
}

/// The thread stands on its stack before it has an alternate one, on which alone its own faults
/// can be resolved; and libc, which makes it, writes there.
void prepare(const ThreadStack& stack) noexcept {
    world()->memory->hold_stack(stack.range, stack.guard_bytes);
    if (world()->executable_stacks) allow_code(stack.range);
    omp::touch_top(
        {stack.range.address + stack.guard_bytes, stack.range.bytes - stack.guard_bytes});
}

ThreadStack* find(pthread_t thread) noexcept {
    // A thread's name is the address of its control block, which lies on its stack.
    const auto address = static_cast<std::uintptr_t>(thread);
    for (ThreadStack* each = list; each != nullptr; each = each->next) {
        if (each->in_use && each->range.contains(address)) return each;
    }
    return nullptr;
}

}  // namespace

ThreadStack* open_thread_stack(pthread_attr_t& attributes) noexcept {
    const std::scoped_lock guard{list_latch};
    ThreadStack* const stack = take_place();
    if (stack == nullptr) return nullptr;
    int state = PTHREAD_CREATE_JOINABLE;
    pthread_attr_getdetachstate(&attributes, &state);
    stack->detached = state == PTHREAD_CREATE_DETACHED;
    const dsm::AddressRange given = stack_of_program(attributes);
    if (given.bytes == 0) {
        if (!allocate_stack(*stack, attributes)) {
            stack->in_use = false;
            return nullptr;
        }
    } else if (is_global(reinterpret_cast<const void*>(given.address))) {
        stack->range = given;
    }
    if (stack->range.bytes > 0) prepare(*stack);
    return stack;
}

void close_thread_stack(ThreadStack& stack) noexcept {
    const std::scoped_lock guard{list_latch};
    give_up(stack);
}

void enter_thread_stack(ThreadStack& stack) noexcept { dsm::use_alternate_stack(stack.alternate); }

void note_thread_started(ThreadStack& stack) noexcept {
    stack.thread.store(static_cast<pid_t>(dsm::kernel_call(SYS_gettid)));
}

bool is_thread_starting(pthread_t thread) noexcept {
    const RuntimeScope here;  // a handler of the program would wait for its own thread
    const std::scoped_lock guard{list_latch};
    const ThreadStack* const stack = find(thread);
    return stack != nullptr && stack->thread.load() == 0;
}

void note_thread_joined(pthread_t thread) noexcept {
    const std::scoped_lock guard{list_latch};
    ThreadStack* const stack = find(thread);
    if (stack == nullptr) return;
    stack->over = true;
    give_up(*stack);
}

void note_thread_detached(pthread_t thread) noexcept {
    const std::scoped_lock guard{list_latch};
    ThreadStack* const stack = find(thread);
    if (stack != nullptr) stack->detached = true;
}

bool is_thread_of_this_node(pthread_t thread) noexcept {
    const std::scoped_lock guard{list_latch};
    return find(thread) != nullptr;
}

std::optional<NodeId> other_maker(pthread_t thread) noexcept {
    if (is_thread_of_this_node(thread)) return std::nullopt;
    const auto offset = world()->map->offset_of(static_cast<std::uintptr_t>(thread));
    if (!offset) return std::nullopt;
    const NodeId maker = world()->map->initial_home(*offset);
    return maker == world()->job.self ? std::nullopt : std::optional{maker};
}

bool is_thread_of_other_node(pthread_t thread) noexcept { return other_maker(thread).has_value(); }

}  // namespace hiroba::abi
