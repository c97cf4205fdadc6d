// SPDX-License-Identifier: BSD-3-Clause
// Role: GOMP_task*, taskgroups, taskloops and task reductions.
// Invariant: flags and the layout of depend clauses are those of gcc 4.9 to 14.
#include "abi/gomp/runtime.hpp"
#include "abi/gomp/task_clauses.hpp"
#include "abi/kmp/events.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using hiroba::omp::NewTask;
using hiroba::omp::OutlinedFunction;
using hiroba::omp::TaskLoop;

namespace {

using CopyFunction = void (*)(void*, void*);
using Ull = unsigned long long;

struct LoopArguments {
    OutlinedFunction function;
    void* data;
    CopyFunction copy;
    long bytes, alignment;
    unsigned flags;
    unsigned long tasks;
    int priority;
};

/// Where the compiler leaves the descriptor of a taskloop's reductions.
std::uintptr_t* loop_reductions(void* data) {
    struct Head {
        std::uint64_t first, end;
        std::uintptr_t* reductions;
    };
    return static_cast<Head*>(data)->reductions;
}

void make_loop(const LoopArguments& from, TaskLoop loop) {
    const bool grouped = (from.flags & task_flag::nogroup) == 0;
    const bool reduces = grouped && (from.flags & task_flag::reduction) != 0;
    if (loop.count == 0) {
        // The compiler's code frees nothing then.
        if (reduces) loop_reductions(from.data)[hiroba::omp::reductions::copies_at] = 0;
        return;
    }
    loop.wanted = from.tasks;
    loop.is_grainsize = (from.flags & task_flag::grainsize) != 0;
    loop.strict = (from.flags & task_flag::strict) != 0;
    NewTask task;
    task.function = from.function;
    task.data = from.data;
    task.copy = from.copy;
    task.bytes = static_cast<std::size_t>(from.bytes);
    task.alignment = static_cast<std::size_t>(from.alignment);
    task.deferred = (from.flags & task_flag::if_clause) != 0;
    task.final = (from.flags & task_flag::final) != 0;
    task.priority = task_priority(from.flags, from.priority);
    auto& omp = runtime();
    if (grouped) omp.taskgroup_start();
    if (reduces) omp.register_reductions(loop_reductions(from.data));
    omp.task_loop(task, loop);
    if (grouped) omp.taskgroup_end();
}

}  // namespace

extern "C" {

void GOMP_task(OutlinedFunction function, void* data, CopyFunction copy, long bytes, long alignment,
               bool if_clause, unsigned flags, void** depend, int priority, void* detach) {
    note_caller();
    NewTask task;
    task.function = function;
    task.data = data;
    task.copy = copy;
    task.bytes = static_cast<std::size_t>(bytes);
    task.alignment = static_cast<std::size_t>(alignment);
    task.deferred = if_clause;
    task.final = (flags & task_flag::final) != 0;
    task.untied = (flags & task_flag::untied) != 0;
    task.priority = task_priority(flags, priority);
    if ((flags & task_flag::depend) != 0) task.dependences = read_depend_clause(depend);
    if ((flags & task_flag::detach) != 0) task.event = static_cast<std::uint64_t*>(detach);
    runtime().task(task);
}

void GOMP_taskloop(OutlinedFunction function, void* data, CopyFunction copy, long bytes,
                   long alignment, unsigned flags, unsigned long tasks, int priority, long start,
                   long end, long step) {
    note_caller();
    TaskLoop loop;
    loop.start = static_cast<std::uint64_t>(start);
    loop.step = static_cast<std::uint64_t>(step);
    loop.count = iterations(start, end, step);
    make_loop({function, data, copy, bytes, alignment, flags, tasks, priority}, loop);
}
void GOMP_taskloop_ull(OutlinedFunction function, void* data, CopyFunction copy, long bytes,
                       long alignment, unsigned flags, unsigned long tasks, int priority, Ull start,
                       Ull end, Ull step) {
    note_caller();
    TaskLoop loop;
    loop.start = start;
    loop.step = step;
    loop.count = iterations((flags & task_flag::up) != 0, start, end, step);
    make_loop({function, data, copy, bytes, alignment, flags, tasks, priority}, loop);
}

void GOMP_taskwait() {
    note_caller();
    synchronizes_at(SyncKind::wait, __builtin_return_address(0));
    runtime().task_wait();
}
void GOMP_taskwait_depend(void** depend) {
    note_caller();
    synchronizes_at(SyncKind::wait, __builtin_return_address(0));
    runtime().task_wait_for(read_depend_clause(depend));
}
void GOMP_taskwait_depend_nowait(void** depend) {
    note_caller();
    NewTask nothing;
    nothing.dependences = read_depend_clause(depend);
    runtime().task(nothing);
}
void GOMP_taskyield() {
    note_caller();
    runtime().task_yield();
}
void GOMP_taskgroup_start() {
    note_caller();
    runtime().taskgroup_start();
}
void GOMP_taskgroup_end() {
    note_caller();
    synchronizes_at(SyncKind::wait, __builtin_return_address(0));
    runtime().taskgroup_end();
}

void GOMP_taskgroup_reduction_register(std::uintptr_t* data) {
    note_caller();
    runtime().register_reductions(data);
}
void GOMP_taskgroup_reduction_unregister(std::uintptr_t* data) {
    note_caller();
    runtime().unregister_reductions(data);
}
void GOMP_task_reduction_remap(std::size_t count, std::size_t originals, void** pointers) {
    runtime().remap_reductions({pointers, count}, originals);
}

int omp_in_explicit_task() { return runtime().in_explicit_task(); }
int omp_in_explicit_task_() { return omp_in_explicit_task(); }
void omp_fulfill_event(std::uint64_t event) { runtime().fulfill_event(kmp::event_handle(event)); }
void omp_fulfill_event_(std::uint64_t event) { omp_fulfill_event(event); }  // by value there too

}  // extern "C"
