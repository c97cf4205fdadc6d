// SPDX-License-Identifier: BSD-3-Clause
// Role: see fiber.hpp.
#include "net/provider/sim/fiber.hpp"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/fatal.hpp"

/// src/net/provider/sim/fiber_switch.S
extern "C" void hiroba_switch_fiber(void** save, void* load) noexcept;
extern "C" void hiroba_start_fiber() noexcept;

namespace hiroba::net::sim {

FiberStacks::~FiberStacks() {
    for (std::byte* top : all_) munmap(top - mapping_bytes_, mapping_bytes_);
}

std::byte* FiberStacks::take() {
    if (!free_.empty()) {
        std::byte* const top = free_.back();
        free_.pop_back();
        return top;
    }
    void* const memory = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HIROBA_INVARIANT(memory != MAP_FAILED && mprotect(memory, page_bytes, PROT_NONE) == 0,
                     "stack %lu of %lu bytes: errno %d; see ulimit -v and vm.max_map_count",
                     all_.size(), mapping_bytes_, errno);
    all_.push_back(static_cast<std::byte*>(memory) + mapping_bytes_);
    return all_.back();
}

void FiberStacks::give(std::byte* top) {
    free_.insert(std::upper_bound(free_.begin(), free_.end(), top), top);
}

void prepare_fiber(Fiber& fiber, void (*entry)(void*), void* argument) noexcept {
    // As hiroba_switch_fiber() leaves a stack: r15, r14, r13, r12, rbx, rbp, return address; the
    // stack is aligned when hiroba_start_fiber calls.
    auto** const top = reinterpret_cast<void**>(fiber.stack_top) - 9;
    top[0] = top[1] = top[4] = top[5] = nullptr;
    top[2] = reinterpret_cast<void*>(entry);
    top[3] = argument;
    top[6] = reinterpret_cast<void*>(&hiroba_start_fiber);
    top[7] = nullptr;
    fiber.stack_pointer = top;
    // Its stack is private to the node as it is: releases need no other.
    fiber.context.on_runtime_stack = true;
}

void switch_fiber(void*& save, void* load) noexcept { hiroba_switch_fiber(&save, load); }

}  // namespace hiroba::net::sim
