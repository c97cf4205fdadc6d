// SPDX-License-Identifier: BSD-3-Clause
// Role: taskloops: one task is the pattern, and each task of the loop a copy of it with other
// bounds. Invariant: the bounds lie in the compiler's part of the pattern, and at the same place in
// copies.
#include <cstring>

#include "abi/kmp/task_block.hpp"
#include "base/program_call.hpp"

namespace hiroba::abi::kmp {
namespace {

using Duplicate = void (*)(Task* to, Task* from, Int last);

struct Bounds {
    UnsignedLong* lower;
    UnsignedLong* upper;
    Long step;
};

UnsignedLong iterations(const Bounds& bounds) noexcept {
    const UnsignedLong lower = *bounds.lower, upper = *bounds.upper;
    // Bounds of an empty loop are one step apart, in the wrong order, and may have wrapped.
    if (bounds.step == 1) return upper - lower + 1;
    if (bounds.step == -1) return lower - upper + 1;
    const auto first = static_cast<Long>(lower), last = static_cast<Long>(upper);
    if (bounds.step > 0)
        return last < first ? 0 : (upper - lower) / static_cast<UnsignedLong>(bounds.step) + 1;
    return first < last
               ? 0
               : (lower - upper) / (UnsignedLong{0} - static_cast<UnsignedLong>(bounds.step)) + 1;
}

template <class T>
T* moved(T* pointer, TaskBlock* from, TaskBlock* to) noexcept {
    const std::ptrdiff_t at =
        reinterpret_cast<std::byte*>(pointer) - reinterpret_cast<std::byte*>(from);
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(to) + at);
}

TaskBlock* copy_of(TaskBlock* pattern) {
    auto* const copy =
        static_cast<TaskBlock*>(runtime().allocate_for_task(pattern->bytes, TaskBlock::alignment));
    std::memcpy(static_cast<void*>(copy), pattern, pattern->bytes);
    if (pattern->task()->shareds != nullptr)
        copy->task()->shareds =
            moved(static_cast<std::byte*>(pattern->task()->shareds), pattern, copy);
    return copy;
}

void make_tasks(TaskBlock* pattern, const Bounds& bounds, const omp::TaskLoop& loop, bool deferred,
                Duplicate duplicate) {
    const UnsignedLong tasks = loop.tasks(runtime().place().team_size);
    UnsignedLong next = *bounds.lower;
    for (UnsignedLong i = 0; i < tasks; ++i) {
        const UnsignedLong count = loop.iterations_of(i, tasks);
        const UnsignedLong last = next + (count - 1) * static_cast<UnsignedLong>(bounds.step);
        TaskBlock* const block = copy_of(pattern);
        *moved(bounds.lower, pattern, block) = next;
        *moved(bounds.upper, pattern, block) = last;
        if (duplicate != nullptr)
            call_program(duplicate, block->task(), pattern->task(), Int{i + 1 == tasks});
        submit(block, {}, deferred);
        next = last + static_cast<UnsignedLong>(bounds.step);
    }
}

void run(Task* task, Int deferred, const Bounds& bounds, Int no_group, Int how, UnsignedLong wanted,
         bool strict, void* duplicate) {
    constexpr Int by_grainsize = 1;
    TaskBlock* const pattern = TaskBlock::of(task);
    omp::TaskLoop loop;
    loop.count = iterations(bounds);
    loop.wanted = how != 0 ? wanted : 0;
    loop.is_grainsize = how == by_grainsize;
    loop.strict = strict;
    if (no_group == 0) runtime().taskgroup_start();
    make_tasks(pattern, bounds, loop, deferred != 0, reinterpret_cast<Duplicate>(duplicate));
    destroy(*pattern);
    if (no_group == 0) runtime().taskgroup_end();
    runtime().free_for_task(pattern);
}

}  // namespace
}  // namespace hiroba::abi::kmp

#pragma GCC visibility push(default)

using namespace hiroba::abi::kmp;

extern "C" {

void __kmpc_taskloop(Location*, Int, Task* task, Int deferred, UnsignedLong* lower,
                     UnsignedLong* upper, Long step, Int no_group, Int how, UnsignedLong wanted,
                     void* duplicate) {
    run(task, deferred, {lower, upper, step}, no_group, how, wanted, false, duplicate);
}
void __kmpc_taskloop_5(Location*, Int, Task* task, Int deferred, UnsignedLong* lower,
                       UnsignedLong* upper, Long step, Int no_group, Int how, UnsignedLong wanted,
                       Int strict, void* duplicate) {
    run(task, deferred, {lower, upper, step}, no_group, how, wanted, strict != 0, duplicate);
}

}  // extern "C"
