// SPDX-License-Identifier: BSD-3-Clause
// Role: stacks of tasks, each a mapping with a guard page below. A worker keeps those that are free
// for itself, the newest on top: it is in the caches.
// Invariant: a stack in the free list may still be run on by the worker itself, until it jumps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hiroba/tasks_base.hpp"
#include "tasks/context/context.hpp"

namespace hiroba::tasks {

struct Continuation;

/// At the high end of a stack: what is known of it, and of the task on it.
struct alignas(64) Stack {
    StackPlace place;
    Stack* next = nullptr;
    std::size_t mapped_bytes = 0;
    // A child's fields: what runs, who waits for it, and its parent's continuation.
    void (*enter)(void*) = nullptr;
    void* closure = nullptr;
    detail::Join* join = nullptr;
    Continuation* parent = nullptr;
    bool is_parent_published = false;

    /// Where the first frame begins: below the room for a closure.
    std::byte* top() noexcept { return room() - 64; }
    /// Room for a closure, of detail::local_closure_bytes_max bytes, aligned to 64.
    std::byte* room() noexcept {
        return reinterpret_cast<std::byte*>(this) - detail::local_closure_bytes_max;
    }
};

/// A new stack of `bytes` bytes, rounded up to pages; ends the process where there is no room.
Stack* map_stack(std::size_t bytes);
void unmap_stack(Stack* stack) noexcept;

class FreeStacks {
public:
    explicit FreeStacks(std::size_t bytes) : bytes_(bytes) {}
    FreeStacks(const FreeStacks&) = delete;
    FreeStacks& operator=(const FreeStacks&) = delete;
    ~FreeStacks() {
        while (first_ != nullptr) {
            Stack* const each = first_;
            first_ = each->next;
            unmap_stack(each);
        }
    }
    Stack* take() {
        Stack* const found = first_;
        if (found == nullptr) [[unlikely]] {
            Stack* const made = map_stack(bytes_);
            made->place.renew_fiber();
            return made;
        }
        first_ = found->next;
        --count_;
        if (__tsan_create_fiber != nullptr) found->place.renew_fiber();
        return found;
    }
    void give(Stack* stack) noexcept {
        stack->next = first_;
        first_ = stack;
        ++count_;
    }
    /// Unmaps what is more than a worker needs. Not while one of them is run on.
    void trim() noexcept {
        while (count_ > kept_max) {
            Stack* const each = first_;
            first_ = each->next;
            --count_;
            unmap_stack(each);
        }
    }

private:
    static constexpr std::size_t kept_max = 1024;
    Stack* first_ = nullptr;
    std::size_t count_ = 0;
    std::size_t bytes_;
};

}  // namespace hiroba::tasks
