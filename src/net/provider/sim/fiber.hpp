// SPDX-License-Identifier: BSD-3-Clause
// Role: one simulated thread: a stack, a ThreadContext, and the function it runs.
// Invariant: fibers of one scheduler run on one thread of the machine, one at a time, each until it
// gives its turn away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/thread_context.hpp"

namespace hiroba::net::sim {

/// Stacks are mapped once and used again by later fibers, in the same order whatever order they
/// came back in. Outlives the schedulers that use it.
class FiberStacks {
public:
    /// @param stack_bytes  of each, above a guard page; used as touched
    explicit FiberStacks(std::size_t stack_bytes = std::size_t{256} << 10)
        : mapping_bytes_(page_bytes + round_up(stack_bytes, page_bytes)) {}
    FiberStacks(const FiberStacks&) = delete;
    ~FiberStacks();

    /// The top of a stack. Fatal when the machine has none left.
    std::byte* take();
    void give(std::byte* top);

private:
    std::size_t mapping_bytes_;
    std::vector<std::byte*> all_, free_;
};

/// Owned by its scheduler.
struct Fiber {
    std::uint32_t index = 0;  ///< in the order spawned
    NodeId node;
    std::function<void()> body;
    ThreadContext context;
    std::byte* stack_top = nullptr;
    void* stack_pointer = nullptr;  ///< where it goes on
    std::uint64_t naps = 0;         ///< a wake-up meant for an earlier nap comes too late
    bool parked = false;
    bool ended = false;
    bool chosen = false;  ///< takes its steps when a chooser says so
    std::vector<Fiber*> joiners;
};

/// Makes `fiber` start with entry(argument) on its stack when first switched to.
void prepare_fiber(Fiber& fiber, void (*entry)(void*), void* argument) noexcept;
/// Leaves the running stack, whose pointer goes to `save`, for the one stored as `load`.
void switch_fiber(void*& save, void* load) noexcept;

}  // namespace hiroba::net::sim
