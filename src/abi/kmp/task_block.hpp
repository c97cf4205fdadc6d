// SPDX-License-Identifier: BSD-3-Clause
// Role: a task of clang's code: one block of global memory that holds what we keep of it, what the
// compiler knows of it, its private variables, and pointers to what it shares.
// Invariant: the compiler's part lies behind ours. Only the thread that executes the task writes in
// the block after it was handed over, so a stolen task takes its block along.
#pragma once

#include <vector>

#include "abi/kmp/kmp.hpp"

namespace hiroba::abi::kmp {

using Routine = Int (*)(Int, void*);

namespace task_flag {
inline constexpr Int final = 1 << 1, destructors = 1 << 3, priority = 1 << 5;
}

/// The compiler's part: kmp_task_t. Private variables follow.
struct Task {
    void* shareds;
    Routine routine;
    Int part;  ///< of an untied task: where it goes on
    union {
        Int priority;
        Routine destructors;
    } first, second;
};
static_assert(sizeof(Task) == 40);

/// The event of a detached task, in global memory; its address is the program's handle. The
/// thread that fulfills it frees it.
struct Event {
    std::uint64_t handle = 0;  ///< the runtime's
};

struct TaskBlock {
    static constexpr std::size_t alignment = 64;
    std::uint64_t event_handle = 0;  ///< first: the runtime writes it
    std::size_t bytes = 0;           ///< of the whole block
    Event* event = nullptr;          ///< null: not detached
    Int flags = 0;
    bool running = false;
    bool again = false;  ///< the task, an untied one, was handed over while it ran, and goes on
    omp::SuspendedTask outer;  ///< while its creator executes it

    Task* task() noexcept {
        return reinterpret_cast<Task*>(reinterpret_cast<std::byte*>(this) + offset());
    }
    static TaskBlock* of(void* task) noexcept {
        return reinterpret_cast<TaskBlock*>(static_cast<std::byte*>(task) - offset());
    }
    static constexpr std::size_t offset() noexcept;
};
constexpr std::size_t TaskBlock::offset() noexcept {
    return (sizeof(TaskBlock) + alignment - 1) / alignment * alignment;
}

/// A depend clause's item: kmp_depend_info.
struct DependItem {
    std::uintptr_t address;
    std::size_t bytes;
    std::uint8_t flags;
};
static_assert(sizeof(DependItem) == 24);

/// Ends the program with a line where a kind is none.
void append(std::vector<omp::Dependence>& dependences, Int count, const DependItem* items);

/// Executes the task in the block, and runs its destructors.
void run_block(void* block);
/// Destroys the private variables of a block.
void destroy(TaskBlock& block);
/// Gives a task to the runtime, and its block with it.
void submit(TaskBlock* block, std::vector<omp::Dependence> dependences, bool deferred);

}  // namespace hiroba::abi::kmp
