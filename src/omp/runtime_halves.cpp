// SPDX-License-Identifier: BSD-3-Clause
// Role: what compilers' code asks for in two halves and executes the middle of itself: regions of
// gcc before 4.9, and clang's of one thread, undeferred tasks; and flushes.
// Invariant: halves nest. The first half stores its state outside the caller's stack frame, which
// is another one at the second.
#include <memory>

#include "dsm/dsm.hpp"
#include "omp/runtime_core.hpp"
#include "omp/tool/task_observer.hpp"

namespace hiroba::omp {

void RuntimeCore::begin_region(OutlinedFunction function, void* data, std::uint32_t threads,
                               const Loop* loop, std::uint32_t threads_max) noexcept {
    ThreadState& thread = self();
    Fork fork;
    fork.function = function;
    fork.data = data;
    fork.has_loop = loop != nullptr;
    if (loop != nullptr) fork.loop = *loop;
    fork.bind = policy_of(thread);
    const std::uint32_t size = team_size_for(thread, threads, threads_max);
    const bool is_inner = size > 1 && is_in_team(*thread.frame);
    if (is_inner && start_inner(thread, fork, size) != nullptr) return;
    const bool is_alone =
        is_inner || size == 1 || leading_.taken.exchange(true, std::memory_order_acquire);
    if (!is_alone) return start_team(thread, fork, size);
    enter_alone(thread);
    if (loop != nullptr) loop_start(*loop);
}

void RuntimeCore::end_region() noexcept {
    ThreadState& thread = self();
    Team* const team = thread.frame->team;
    if (team == nullptr) return end_alone();
    if (team != &everywhere_) return finish_inner(thread, *team);
    finish_team(thread);
    leading_.taken.store(false, std::memory_order_release);  // pairs with begin_region()
}

void RuntimeCore::begin_alone() noexcept {
    ThreadState& thread = self();
    enter_alone(thread);
    show_affinity(thread, PoolKind::llvm);
}

void RuntimeCore::enter_alone(ThreadState& thread) noexcept {
    const RuntimeScope here;
    auto frame = std::make_unique<Frame>();
    frame->parent = thread.frame;
    frame->icvs = icvs_inside(*thread.frame);
    frame->binding = thread.frame->binding;
    frame->place.level = thread.frame->place.level + 1;
    frame->place.active_level = thread.frame->place.active_level;
    thread.frame = frame.release();
}

void RuntimeCore::end_alone() noexcept {
    ThreadState& thread = self();
    barrier();
    const RuntimeScope here;
    const std::unique_ptr<Frame> frame(thread.frame);
    release_implicit(*frame);
    thread.frame = frame->parent;
}

void RuntimeCore::begin_task(SuspendedTask* outer, bool final) noexcept {
    Frame& frame = *self().frame;
    if (frame.task == nullptr) current_task(frame);
    *outer = {frame.task, frame.inlined, frame.inlined_final, nullptr};
    frame.inlined_final = final || in_final();
    frame.inlined = true;
    if (parts_.observer == nullptr) return;
    NewTask undeferred;
    undeferred.function = [](void*) {};  // Its code is the caller's.
    outer->kept = begin_inline(undeferred);
}

void RuntimeCore::end_task(const SuspendedTask& outer) noexcept {
    Frame& frame = *self().frame;
    Task* const made = frame.inlined ? nullptr : frame.task;
    frame.task = outer.task;
    frame.inlined = outer.inlined;
    frame.inlined_final = outer.inlined_final;
    tasks_executed_.fetch_add(1, std::memory_order_relaxed);
    if (parts_.observer != nullptr) parts_.observer->task_ends(outer.kept, false);
    if (made != nullptr) end_body(*made);
}

std::uintptr_t* RuntimeCore::group_reductions() noexcept {
    const TaskGroup& group = *current_task(*self().frame).group;
    if (group.outer == nullptr || group.reductions == group.outer->reductions) return nullptr;
    return group.reductions;
}

void RuntimeCore::flush() noexcept {
    acquire_lost();
    if (link_ != nullptr) parts_.memory->flush();
}

}  // namespace hiroba::omp
