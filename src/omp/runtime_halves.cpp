// SPDX-License-Identifier: BSD-3-Clause
// Role: what clang's code asks for in two halves and executes the middle of itself: regions of one
// thread, undeferred tasks; and flushes.
// Invariant: halves nest. The first half stores its state outside the caller's stack frame, which
// is another one at the second.
#include <memory>

#include "dsm/dsm.hpp"
#include "omp/runtime_core.hpp"
#include "omp/tool/task_observer.hpp"

namespace hiroba::omp {

void RuntimeCore::begin_alone() noexcept {
    ThreadState& thread = self();
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
