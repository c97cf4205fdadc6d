// SPDX-License-Identifier: BSD-3-Clause
// Role: tasks: made, handed over or executed in between two calls, waited for, detached.
// Invariant: an untied task that comes to a scheduling point hands itself over and returns; it goes
// on at once on the same thread, which any schedule may do.
#include <algorithm>
#include <cstring>
#include <new>

#include "abi/kmp/events.hpp"
#include "abi/kmp/task_block.hpp"
#include "base/fatal.hpp"
#include "base/program_call.hpp"

namespace hiroba::abi::kmp {

namespace {

namespace depend_flag {
constexpr unsigned in = 1, out = 2, mutexinoutset = 4, inoutset = 8, all = 0x80;
}

/// omp_all_memory has a flag of its own, or is any kind at the last address there is, or out and
/// inout at address 0.
omp::DependenceKind kind_of(const DependItem& item) {
    using enum omp::DependenceKind;
    if ((item.flags & depend_flag::all) != 0) return all_memory;
    if (item.address == ~decltype(item.address){0}) return all_memory;
    if (item.flags == (depend_flag::in | depend_flag::out) && item.address == 0) return all_memory;
    switch (item.flags) {
        case depend_flag::in: return in;
        case depend_flag::out: return out;
        case depend_flag::in | depend_flag::out: return inout;
        case depend_flag::mutexinoutset: return mutexinoutset;
        case depend_flag::inoutset: return inoutset;
        default:
            die(1, "a dependence on 0x%lx has kind 0x%x, which is none",
                static_cast<unsigned long>(item.address), item.flags);
    }
}

std::int32_t priority_of(TaskBlock& block) noexcept {
    if ((block.flags & task_flag::priority) == 0) return 0;
    return std::clamp(block.task()->second.priority, 0, runtime().environment().task_priority_max);
}

void execute(TaskBlock& block) {
    Task* const task = block.task();
    const auto thread = static_cast<Int>(runtime().place().thread);
    do {
        block.again = false;
        // None: a `taskwait nowait depend(...)`.
        if (task->routine != nullptr) call_program(task->routine, thread, task);
    } while (block.again);
}

TaskBlock* make_block(Int flags, std::size_t task_bytes, std::size_t shared_bytes,
                      Routine routine) {
    constexpr std::size_t unit = alignof(std::max_align_t);
    const std::size_t shareds_at = TaskBlock::offset() + (task_bytes + unit - 1) / unit * unit;
    const std::size_t bytes = shareds_at + shared_bytes;
    void* const memory = runtime().allocate_for_task(bytes, TaskBlock::alignment);
    auto* const block = new (memory) TaskBlock;
    block->bytes = bytes;
    block->flags = flags;
    Task* const task = block->task();
    std::memset(static_cast<void*>(task), 0, sizeof *task);
    task->shareds = shared_bytes != 0 ? static_cast<std::byte*>(memory) + shareds_at : nullptr;
    task->routine = routine;
    return block;
}

/// An event that lasts from here to its fulfilment, though the task is executed in between.
void await_event_of(TaskBlock& block) {
    omp::NewTask wanted;
    wanted.event = &block.event->handle;
    wanted.dependences = {{key_of(&block), omp::DependenceKind::inout}};
    runtime().task(wanted);
}

}  // namespace

void append(std::vector<omp::Dependence>& dependences, Int count, const DependItem* items) {
    for (Int i = 0; i < count; ++i) dependences.push_back({items[i].address, kind_of(items[i])});
}

void destroy(TaskBlock& block) {
    if ((block.flags & task_flag::destructors) == 0) return;
    call_program(block.task()->first.destructors, static_cast<Int>(runtime().place().thread),
                 block.task());
}

void run_block(void* at) {
    auto& block = *static_cast<TaskBlock*>(at);
    const bool has_objects = (block.flags & task_flag::destructors) != 0;
    if (!has_objects || !runtime().cancellation_point(omp::Cancel::taskgroup)) {
        block.running = true;
        execute(block);
        block.running = false;
    }
    destroy(block);
}

void submit(TaskBlock* block, std::vector<omp::Dependence> dependences, bool deferred) {
    omp::NewTask wanted;
    wanted.function = &run_block;
    wanted.data = block;
    wanted.gives_data = true;
    wanted.deferred = deferred;
    wanted.final = (block->flags & task_flag::final) != 0;
    wanted.runs_anyway = (block->flags & task_flag::destructors) != 0;
    wanted.priority = priority_of(*block);
    if (block->event != nullptr) wanted.event = &block->event->handle;
    wanted.dependences = std::move(dependences);
    runtime().task(wanted);
}

std::uint64_t event_handle(std::uint64_t handle) noexcept {
    if (handle >= first_runtime_handle) return handle;
    auto* const event = reinterpret_cast<Event*>(handle);
    const std::uint64_t inner = event->handle;
    runtime().free_for_task(event);
    return inner;
}

}  // namespace hiroba::abi::kmp

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

namespace {

std::vector<hiroba::omp::Dependence> clause_of(Int count, const DependItem* items, Int more,
                                               const DependItem* others) {
    std::vector<hiroba::omp::Dependence> dependences;
    append(dependences, count, items);
    append(dependences, more, others);
    return dependences;
}

}  // namespace

extern "C" {

Task* __kmpc_omp_task_alloc(Location*, Int, Int flags, std::size_t task_bytes,
                            std::size_t shared_bytes, Routine routine) {
    return make_block(flags, task_bytes, shared_bytes, routine)->task();
}
Task* __kmpc_omp_target_task_alloc(Location*, Int, Int flags, std::size_t task_bytes,
                                   std::size_t shared_bytes, Routine routine, Long) {
    return make_block(flags, task_bytes, shared_bytes, routine)->task();
}
void* __kmpc_task_allow_completion_event(Location*, Int, Task* task) {
    TaskBlock* const block = TaskBlock::of(task);
    if (block->event == nullptr)
        block->event = new (runtime().allocate_for_task(sizeof(Event), alignof(Event))) Event;
    return block->event;
}
Int __kmpc_omp_reg_task_with_affinity(Location*, Int, Task*, Int, void*) { return 0; }

Int __kmpc_omp_task_with_deps(Location*, Int, Task* task, Int count, const DependItem* items,
                              Int more, const DependItem* others) {
    note_caller();
    TaskBlock* const block = TaskBlock::of(task);
    block->again = block->running;
    if (!block->running) submit(block, clause_of(count, items, more, others), true);
    return 0;
}
Int __kmpc_omp_task(Location* at, Int thread, Task* task) {
    return __kmpc_omp_task_with_deps(at, thread, task, 0, nullptr, 0, nullptr);
}
Int __kmpc_omp_task_parts(Location* at, Int thread, Task* task) {
    return __kmpc_omp_task(at, thread, task);
}

void __kmpc_omp_task_begin_if0(Location*, Int, Task* task) {
    note_caller();
    TaskBlock& block = *TaskBlock::of(task);
    if (block.event != nullptr) await_event_of(block);
    block.running = true;
    runtime().begin_task(&block.outer, (block.flags & task_flag::final) != 0);
}
void __kmpc_omp_task_complete_if0(Location*, Int, Task* task) {
    note_caller();
    TaskBlock& block = *TaskBlock::of(task);
    if (block.again) execute(block);
    destroy(block);
    runtime().end_task(block.outer);
    if (block.event != nullptr)
        runtime().task_wait_for({{key_of(&block), hiroba::omp::DependenceKind::in}});
    runtime().free_for_task(&block);
}

void __kmpc_omp_wait_deps(Location*, Int, Int count, const DependItem* items, Int more,
                          const DependItem* others) {
    note_caller();
    synchronizes_at(SyncKind::wait, __builtin_return_address(0));
    runtime().task_wait_for(clause_of(count, items, more, others));
}
void __kmpc_omp_taskwait_deps_51(Location*, Int, Int count, const DependItem* items, Int more,
                                 const DependItem* others, Int no_wait) {
    note_caller();
    synchronizes_at(SyncKind::wait, __builtin_return_address(0));
    auto dependences = clause_of(count, items, more, others);
    if (no_wait == 0) return runtime().task_wait_for(std::move(dependences));
    // Its place in the order is all there is of it.
    hiroba::omp::NewTask nothing;
    nothing.dependences = std::move(dependences);
    runtime().task(nothing);
}
Int __kmpc_omp_taskwait(Location*, Int) {
    note_caller();
    synchronizes_at(SyncKind::wait, __builtin_return_address(0));
    runtime().task_wait();
    return 0;
}
Int __kmpc_omp_taskyield(Location*, Int, int) {
    note_caller();
    runtime().task_yield();
    return 0;
}
void __kmpc_taskgroup(Location*, Int) {
    note_caller();
    runtime().taskgroup_start();
}

Int __kmpc_omp_has_task_team(Int) { return 1; }

}  // extern "C"
