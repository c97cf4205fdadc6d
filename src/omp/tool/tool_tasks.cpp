// SPDX-License-Identifier: BSD-3-Clause
// Role: explicit tasks, as a tool hears of them.
// Invariant: a task is told of where its creator runs, and where it is executed: a task that comes
// from another node is made known here before it begins, and its end over there is told at home as
// a late completion. The code that tells of a task's end gives back what is kept of it.
#include <algorithm>

#include "omp/tool/tool_runtime.hpp"

namespace hiroba::omp {

using ompt::Event;
using ompt::TaskStatus;

namespace {

int kind_of(DependenceKind kind) noexcept {
    switch (kind) {
        case DependenceKind::in: return ompt::dependence_kind::in;
        case DependenceKind::out: return ompt::dependence_kind::out;
        case DependenceKind::inout: return ompt::dependence_kind::inout;
        case DependenceKind::mutexinoutset: return ompt::dependence_kind::mutexinoutset;
        case DependenceKind::inoutset: return ompt::dependence_kind::inoutset;
        case DependenceKind::all_memory: return ompt::dependence_kind::inout_all_memory;
    }
    return ompt::dependence_kind::inout;
}

ToolTask* make_task() {
    const RuntimeScope here;
    return new ToolTask;
}
}  // namespace

void ToolRuntime::tell_dependences(ToolTask& task,
                                   std::span<const Dependence> dependences) noexcept {
    if (dependences.empty() || !tool_->hears(Event::dependences)) return;
    std::vector<ompt::Dependence> told;
    {
        const RuntimeScope here;
        told.reserve(dependences.size());
    }
    for (const Dependence& each : dependences)
        told.push_back({{.value = each.address}, kind_of(each.kind)});
    tool_->tell(Event::dependences, &task.data, told.data(), static_cast<int>(told.size()));
    const RuntimeScope here;
    told = {};
}

void* ToolRuntime::task_created(const NewTask& wanted, bool deferred, bool final) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr || own->task == nullptr) return nullptr;
    ToolTask* const task = make_task();
    const bool only_waits = wanted.function == nullptr;
    task->flags = (only_waits ? ompt::task_flag::taskwait : ompt::task_flag::explicit_) |
                  (wanted.is_target ? ompt::task_flag::target : 0) |
                  (deferred ? 0 : ompt::task_flag::undeferred) |
                  (final ? ompt::task_flag::final : 0) |
                  (wanted.untied ? ompt::task_flag::untied : 0);
    task->team = own->task->team;
    task->detached = wanted.event != nullptr;
    task->nowait = wanted.is_target && wanted.deferred;
    tool_->tell(Event::task_create, &own->task->data, &own->task->frame, &task->data, task->flags,
                wanted.dependences.empty() ? 0 : 1, own->code);
    tell_dependences(*task, wanted.dependences);
    return task;
}

void ToolRuntime::task_waits_for(void* before) noexcept {
    ToolThread* const own = tool_thread_if_known();
    if (own == nullptr || before == nullptr || !tool_->hears(Event::task_dependence)) return;
    auto* const task = static_cast<ToolTask*>(before);
    // The two depend by several addresses.
    if (std::ranges::find(own->waited_for, task) != own->waited_for.end()) return;
    task->held.fetch_add(1);
    own->waited_for.push_back(task);
}

void ToolRuntime::tell_waits(void* kept) noexcept {
    ToolThread* const own = tool_thread_if_known();
    if (own == nullptr) return;
    for (ToolTask* const before : own->waited_for) {
        if (kept != nullptr)
            tool_->tell(Event::task_dependence, &before->data, &static_cast<ToolTask*>(kept)->data);
        tool_->let_go(*before);
    }
    own->waited_for.clear();
}

void ToolRuntime::task_begins(void*& kept, bool is_target, void* stack) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr || own->task == nullptr) return;
    if (kept == nullptr) {
        ToolTask* const guest = make_task();
        guest->flags = ompt::task_flag::explicit_ | (is_target ? ompt::task_flag::target : 0);
        guest->nowait = is_target;  // else it would not have come
        guest->team = own->task->team;
        tool_->tell(Event::task_create, &own->task->data, &own->task->frame, &guest->data,
                    guest->flags, 0, nullptr);
        kept = guest;
    }
    auto& task = *static_cast<ToolTask*>(kept);
    ToolTask& before = *own->task;
    task.below = &before;
    task.thread = before.thread;
    task.frame.exit_frame.pointer = stack;
    task.frame.exit_flags = ompt::frame_flag::runtime | ompt::frame_flag::stack_address;
    const TaskStatus status = own->yields ? TaskStatus::yield : TaskStatus::switched;
    if ((task.flags & ompt::task_flag::taskwait) == 0)
        tool_->tell(Event::task_schedule, &before.data, static_cast<int>(status), &task.data);
    own->task = &task;
}

void ToolRuntime::task_ends(void* kept, bool discarded) noexcept {
    auto* const task = static_cast<ToolTask*>(kept);
    ToolThread* const own = tool_thread_if_known();
    if (task == nullptr || own == nullptr) return;
    end_single(*own);
    task->frame.exit_frame.value = 0;
    own->task = task->below;
    using Stage = ToolTask::Stage;
    const bool goes_on = task->detached && !discarded;
    if ((task->flags & ompt::task_flag::taskwait) != 0) {
        tool_->tell(Event::task_schedule, &task->data,
                    static_cast<int>(TaskStatus::taskwait_complete), nullptr);
        return tool_->let_go(*task);
    }
    // Told before it counts as ended: a thread that fulfils its event in between tells that later.
    const bool waits = goes_on && task->stage.load() != Stage::fulfilled;
    const TaskStatus status = discarded ? TaskStatus::cancel
                              : waits   ? TaskStatus::detach
                                        : TaskStatus::complete;
    tool_->tell(Event::task_schedule, &task->data, static_cast<int>(status), &own->task->data);
    if (!goes_on) return tool_->let_go(*task);
    const Stage before = task->stage.exchange(Stage::ended);
    if (before != Stage::fulfilled) return;  // omp_fulfill_event() gives it back.
    if (waits)
        tool_->note_ended(*task, TaskStatus::late_fulfill);
    else
        tool_->let_go(*task);
}

void ToolRuntime::task_ended_elsewhere(void* kept) noexcept {
    auto* const task = static_cast<ToolTask*>(kept);
    if (!task->detached ||
        task->stage.exchange(ToolTask::Stage::ended) == ToolTask::Stage::fulfilled)
        tool_->note_ended(*task, TaskStatus::late_fulfill);
}

void ToolRuntime::task_fulfilled(void* kept) noexcept {
    auto* const task = static_cast<ToolTask*>(kept);
    if (!task->detached) return;
    const auto before = task->stage.exchange(ToolTask::Stage::fulfilled);
    if (before == ToolTask::Stage::ended) tool_->note_ended(*task, TaskStatus::late_fulfill);
}

void ToolRuntime::fulfill_event(std::uint64_t event) noexcept {
    core_->fulfill_event(event);
    if (tool_->is_on() && tool_thread_if_known() != nullptr) tool_->tell_of_ended();
}

}  // namespace hiroba::omp
