// SPDX-License-Identifier: BSD-3-Clause
// Role: explicit tasks: making them, executing them, waiting for them.
// Invariant: a thread that waits in a task executes only descendants of that task (the task
// scheduling constraint, every task being tied); in a barrier, any of the team. A thread sends the
// reports that a task's body left for its origin before it does anything else.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "base/program_call.hpp"
#include "base/record.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "omp/runtime_core.hpp"
#include "omp/task/reductions.hpp"
#include "omp/tool/task_observer.hpp"

namespace hiroba::omp {

namespace {
/// How long to wait for descendants that are on other nodes before asking for them once more.
constexpr std::uint64_t ask_again_max_ns = 20'000'000;

/// Whether a deferred task's argument goes along with its descriptor. Where it lies is nothing to a
/// program that has its bytes copied.
bool is_short(const NewTask& wanted) noexcept {
    return wanted.bytes != 0 && wanted.bytes <= Task::short_argument_max &&
           wanted.copy == nullptr && wanted.alignment <= alignof(std::max_align_t);
}
}  // namespace

Task& RuntimeCore::current_task(Frame& frame) noexcept {
    if (frame.task == nullptr) {
        frame.implicit = tasks_.with_books([&frame](TaskBook& book) {
            Task& task = book.make();
            book.make_implicit(task, frame.team != nullptr ? frame.team->tasks : nullptr);
            task.descendants.reductions = frame.reductions;
            return &task;
        });
        frame.task = frame.implicit;
    }
    if (frame.inlined) {
        Task& parent = *frame.task;
        const Icvs& icvs = &parent != frame.implicit ? parent.icvs : frame.icvs;
        frame.task = tasks_.with_books([&](TaskBook& book) {
            Task& task = book.make();
            task.final = frame.inlined_final;
            task.icvs = icvs;
            book.create(task, parent);
            book.start_undeferred(task);
            return &task;
        });
        frame.inlined = false;
    }
    return *frame.task;
}

void RuntimeCore::release_implicit(Frame& frame) noexcept {
    if (frame.implicit != nullptr)
        tasks_.with_books([&frame](TaskBook& book) { book.release(*frame.implicit); });
    frame.implicit = frame.task = nullptr;
}

Icvs& RuntimeCore::icvs() noexcept {
    Frame& frame = *self().frame;
    if (frame.inlined) current_task(frame);  // The task may set its ICVs.
    return frame.task != frame.implicit ? frame.task->icvs : frame.icvs;
}

bool RuntimeCore::in_final() noexcept {
    const Frame& frame = *self().frame;
    if (frame.inlined) return frame.inlined_final;
    return frame.task != nullptr && frame.task->final;
}

bool RuntimeCore::in_explicit_task() noexcept {
    const Frame& frame = *self().frame;
    return frame.inlined || frame.task != frame.implicit;
}

TaskCounts RuntimeCore::task_counts() const noexcept {
    auto& tasks = const_cast<TaskPool&>(tasks_);
    TaskExchange* const exchange = tasks.exchange();
    return {tasks_executed_.load(std::memory_order_relaxed),
            exchange != nullptr ? exchange->tasks_taken() : 0};
}

// --- making --------------------------------------------------------------------------------------

void RuntimeCore::task(const NewTask& wanted) noexcept {
    ThreadState& thread = self();
    Frame& frame = *thread.frame;
    if (environment_.cancellation && !wanted.runs_anyway &&
        (is_cancelled(frame) || is_group_cancelled(frame))) {
        if (wanted.gives_data) tasks_.free_argument(wanted.data);
        return;
    }
    const bool may_wait = wanted.deferred && !in_final() && frame.place.level > 0;
    const bool plain = wanted.dependences.empty() && wanted.event == nullptr;
    if (plain && (!may_wait || tasks_.has_enough())) return execute_inline(frame, wanted);
    // A detached one may be waited for by what its creator does next.
    const bool deferred = may_wait && (wanted.event != nullptr || !tasks_.has_enough());
    Task& task = make_task(frame, wanted, deferred);
    if (parts_.observer != nullptr)
        task.kept = parts_.observer->task_created(wanted, deferred, task.final);
    // The event handle must be in the body's data before the task may be started.
    if (wanted.event != nullptr) {
        *wanted.event = task_handle(task);
        if (wanted.data != nullptr) std::memcpy(wanted.data, wanted.event, sizeof *wanted.event);
    }
    task.argument = wanted.data;
    void* front = wanted.data;
    if (deferred && is_short(wanted)) {
        task.short_bytes = static_cast<std::uint32_t>(wanted.bytes);
        front = std::memcpy(task.short_argument, wanted.data, wanted.bytes);
    } else if (wanted.bytes != 0 && (deferred || wanted.copy != nullptr || wanted.always_copied)) {
        front = task.argument = copy_argument(wanted);
        task.owns_argument = true;
    }
    if (wanted.gives_data) task.owns_argument = true;
    if (wanted.front != nullptr) std::memcpy(front, wanted.front, 2 * sizeof(*wanted.front));
    if (!deferred) return run_undeferred(thread, task, wanted);
    std::vector<Dependence> dependences = wanted.dependences;
    if (parts_.observer != nullptr && !dependences.empty())
        return depend_and_tell(task, dependences);
    tasks_.with_books_and_attend([&](TaskBook& book) {
        if (dependences.empty() || book.depend(task, dependences)) book.make_ready(task);
    });
}

/// Enters the dependences of `task`. The task waits for one task too many until a tool has been
/// told of those it waits for.
void RuntimeCore::depend_and_tell(Task& task, std::vector<Dependence>& dependences) noexcept {
    tasks_.with_books([&](TaskBook& book) {
        book.depend(task, dependences);
        ++task.unmet;
    });
    parts_.observer->tell_waits(task.kept);
    tasks_.with_books_and_attend([&task](TaskBook& book) { book.meet_one(task); });
}

Task& RuntimeCore::make_task(Frame& frame, const NewTask& wanted, bool deferred) noexcept {
    Task& parent = current_task(frame);
    const Icvs& own = &parent != frame.implicit ? parent.icvs : frame.icvs;
    return *tasks_.with_books([&](TaskBook& book) {
        Task& task = book.make();
        task.function = wanted.function;
        task.priority = wanted.priority;
        task.final = wanted.final || parent.final;
        task.runs_anyway = wanted.copy != nullptr || wanted.runs_anyway;
        task.is_target = wanted.is_target;
        task.icvs = own;
        task.detached = wanted.event != nullptr;
        book.create(task, parent);
        if (!deferred) book.start_undeferred(task);
        return &task;
    });
}

/// Executes a new task at once. Its descriptor is made when the task does something that needs one.
void RuntimeCore::execute_inline(Frame& frame, const NewTask& wanted) noexcept {
    if (frame.task == nullptr) current_task(frame);
    Task* const outer = frame.task;
    const bool outer_inlined = frame.inlined, outer_final = frame.inlined_final;
    const bool copies = wanted.bytes != 0 && (wanted.copy != nullptr || wanted.always_copied);
    void* const argument = copies ? copy_argument(wanted) : wanted.data;
    if (wanted.front != nullptr) std::memcpy(argument, wanted.front, 2 * sizeof *wanted.front);
    frame.inlined_final = wanted.final || in_final();
    frame.inlined = true;
    void* const kept = parts_.observer != nullptr ? begin_inline(wanted) : nullptr;
    if (wanted.function != nullptr) call_program(wanted.function, argument);
    if (parts_.observer != nullptr) parts_.observer->task_ends(kept, false);
    Task* const made = frame.inlined ? nullptr : frame.task;
    frame.task = outer;
    frame.inlined = outer_inlined;
    frame.inlined_final = outer_final;
    tasks_executed_.fetch_add(1, std::memory_order_relaxed);
    if (copies || wanted.gives_data) tasks_.free_argument(argument);
    if (made != nullptr) end_body(*made);
}

void* RuntimeCore::begin_inline(const NewTask& wanted) noexcept {
    void* kept = parts_.observer->task_created(wanted, false, self().frame->inlined_final);
    if (kept != nullptr)
        parts_.observer->task_begins(kept, wanted.is_target, __builtin_frame_address(0));
    return kept;
}

void* RuntimeCore::copy_argument(const NewTask& wanted) noexcept {
    void* const argument = tasks_.allocate_argument(wanted.bytes, wanted.alignment);
    if (wanted.copy != nullptr)
        call_program(wanted.copy, argument, wanted.data);
    else
        std::memcpy(argument, wanted.data, wanted.bytes);
    return argument;
}

void RuntimeCore::run_undeferred(ThreadState& thread, Task& task, const NewTask& wanted) noexcept {
    if (!wanted.dependences.empty()) {
        std::vector<Dependence> dependences = wanted.dependences;
        const bool at_once =
            tasks_.with_books([&](TaskBook& book) { return book.depend(task, dependences); });
        if (parts_.observer != nullptr) parts_.observer->tell_waits(task.kept);
        if (!at_once) work_until(thread, task.parent, [&task] { return task.unmet == 0; });
    }
    execute(thread, task);
}

// --- executing -----------------------------------------------------------------------------------

void RuntimeCore::execute(ThreadState& thread, Task& task) noexcept {
    Frame& frame = *thread.frame;
    Task* const outer = frame.task;
    frame.task = &task;
    task.discarded = is_discarded(frame, task);
    if (parts_.observer != nullptr)
        parts_.observer->task_begins(task.kept, task.is_target, __builtin_frame_address(0));
    if (task.function != nullptr && !task.discarded) {
        const RecordedSpan recorded{RecordKind::task,
                                    reinterpret_cast<std::uintptr_t>(task.function), 0,
                                    RecordedSpan::long_ticks};
        call_body(task);
    }
    frame.task = outer;
    tasks_executed_.fetch_add(1, std::memory_order_relaxed);
    if (parts_.observer != nullptr) tell_of_end(task);
    end_body(task);
}

/// Copies a short argument to this thread's stack. The stack is global memory, as an argument must
/// be, and most likely at hand here.
void RuntimeCore::call_body(const Task& task) noexcept {
    if (task.short_bytes == 0) {
        call_program(task.function, task.argument);
        return;
    }
    alignas(std::max_align_t) std::byte argument[Task::short_argument_max];
    std::memcpy(argument, task.short_argument, task.short_bytes);
    call_program(task.function, argument);
}

/// A detached task's end is its event's: what is kept of it stays till then.
void RuntimeCore::tell_of_end(Task& task) noexcept {
    void* const kept = task.kept;
    if (!task.detached || task.discarded)
        tasks_.with_books([&task](TaskBook&) { task.kept = nullptr; });
    parts_.observer->task_ends(kept, task.discarded);
}

void RuntimeCore::end_body(Task& task) noexcept {
    // A guest's argument is its origin's to free.
    if (task.owns_argument) tasks_.free_argument(task.argument);
    task.owns_argument = false;
    std::vector<GuestReport> reports;
    bool goes_on = false;
    tasks_.with_books([&](TaskBook& book) {
        book.end_body(task);
        if (!book.reports().empty()) reports.swap(book.reports());
        goes_on = book.queued() != 0;
    });
    if (!reports.empty()) tasks_.exchange()->tell(reports, goes_on);
}

void RuntimeCore::work_until(ThreadState& thread, Task* of, Condition done) noexcept {
    const RecordedSpan recorded{RecordKind::wait, 0, 0, RecordedSpan::long_ticks};
    AskPace pace;
    for (;;) {
        const std::uint64_t seen = tasks_.events();
        bool over = false;
        Task* const task = tasks_.choose_first([&](TaskBook& book) -> Task* {
            over = done();
            if (over) return nullptr;
            if (of != nullptr) return book.take_descendant(*of);
            TaskTeam* const team = tasks_of(thread);
            return team != nullptr ? book.take_any(*team) : nullptr;
        });
        if (over) break;
        if (task != nullptr) {
            execute(thread, *task);
            pace = {};
        } else if (tasks_.events() == seen) {
            wait_for_work(of, seen, pace, done);
        }
    }
    if (tasks_.exchange() != nullptr && tasks_.exchange()->has_work())
        tasks_.exchange()->call_clerk();
}

/// Whether to ask other nodes for the descendants of `away` now.
bool RuntimeCore::AskPace::asks_now(const std::vector<TaskHandle>& away) {
    std::vector<std::uint64_t> wanted;
    wanted.reserve(away.size());
    for (const TaskHandle each : away) wanted.push_back(each.raw);
    std::sort(wanted.begin(), wanted.end());
    // When some of them have ended, the others need not be asked for once more.
    const bool known = std::includes(asked.begin(), asked.end(), wanted.begin(), wanted.end());
    const std::uint64_t now = now_ns();
    if (known && now < next_ns) return false;
    asked.swap(wanted);
    next_ns = now + patience_ns;
    patience_ns = std::min(2 * patience_ns, ask_again_max_ns);
    return true;
}

void RuntimeCore::wait_for_work(Task* of, std::uint64_t seen, AskPace& pace,
                                Condition done) noexcept {
    // The condition that a task (`of`) waits for changes with the books only; it is looked at under
    // their latch.
    if (link_ == nullptr) {
        // Relaxed: a hint.
        const bool crowded = patience_.is_crowded.load(std::memory_order_relaxed);
        return tasks_.wait_here(seen, crowded ? patience_.of_crowd : patience_,
                                [&] { return of == nullptr && done(); });
    }
    std::vector<TaskHandle> away;
    if (of != nullptr) tasks_.with_books([&](TaskBook& book) { book.list_away(*of, away); });
    if (!away.empty() && pace.asks_now(away)) tasks_.exchange()->ask_for(away);
    const std::uint64_t until_ns = away.empty() ? net::Endpoint::forever : pace.next_ns;
    {
        TaskPool::Waiting waiting{tasks_};
        waiting.will_attend();
        on_runtime_stack([&] {
            parts_.endpoint->wait_until(
                [&] {
                    return tasks_.stirs(seen) || parts_.interruptions.are_pending() ||
                           (of == nullptr && done());
                },
                until_ns);
        });
    }
    if (parts_.interruptions.are_pending()) parts_.interruptions.serve();
}

void RuntimeCore::help(ThreadState& thread) noexcept {
    for (;;) {
        const std::uint64_t seen = tasks_.events();
        bool is_member = false;  // The thread is in a team whose tasks travel.
        Task* const task = tasks_.choose_first([&](TaskBook& book) -> Task* {
            TaskTeam* const team = tasks_of(thread);
            is_member = team != nullptr && team->everywhere;
            return team != nullptr ? book.take_any(*team) : nullptr;
        });
        if (task != nullptr) {
            execute(thread, *task);
        } else if (tasks_.events() == seen) {
            thread.events_seen = seen;
            if (is_member) tasks_.exchange()->ask_any();
            return;
        }
    }
}

// --- waiting -------------------------------------------------------------------------------------

void RuntimeCore::task_wait() noexcept {
    ThreadState& thread = self();
    Task* const task = thread.frame->task;
    if (task == nullptr || thread.frame->inlined) return;  // without children
    work_until(thread, task, [task] { return task->children == 0; });
}

void RuntimeCore::task_wait_for(std::vector<Dependence> dependences) noexcept {
    NewTask nothing;
    nothing.deferred = false;
    nothing.dependences = std::move(dependences);
    const Frame& frame = *self().frame;
    if (frame.task != nullptr && !frame.inlined) task(nothing);
}

void RuntimeCore::task_yield() noexcept {
    ThreadState& thread = self();
    Task* const of = thread.frame->task;
    if (of == nullptr || thread.frame->inlined) return;
    Task* const task =
        tasks_.choose_first([of](TaskBook& book) { return book.take_descendant(*of); });
    if (task != nullptr) execute(thread, *task);
}

void RuntimeCore::taskgroup_start() noexcept {
    Task& task = current_task(*self().frame);
    auto* const group = new TaskGroup;
    tasks_.with_books([&](TaskBook&) {
        group->outer = task.group;
        group->reductions = task.group->reductions;
        task.group = group;
    });
}

void RuntimeCore::taskgroup_end() noexcept {
    ThreadState& thread = self();
    Task& task = current_task(*thread.frame);
    TaskGroup* const group = task.group;
    work_until(thread, &task, [group] { return group->count == 0; });
    tasks_.with_books([&](TaskBook&) { task.group = group->outer; });
    delete group;
}

// --- loops and reductions ------------------------------------------------------------------------

void RuntimeCore::task_loop(NewTask& wanted, const TaskLoop& loop) noexcept {
    const std::uint64_t tasks = loop.tasks(self().frame->place.team_size);
    std::uint64_t done = 0;
    for (std::uint64_t i = 0; i < tasks; ++i) {
        const std::uint64_t count = loop.iterations_of(i, tasks);
        const std::uint64_t front[2] = {loop.start + done * loop.step,
                                        loop.start + (done + count) * loop.step};
        wanted.front = front;
        task(wanted);
        done += count;
    }
}

std::uintptr_t* RuntimeCore::task_reductions() noexcept {
    Frame& frame = *self().frame;
    // A task without a descriptor is in the group of its parent.
    return frame.task != nullptr ? frame.task->group->reductions
                                 : current_task(frame).group->reductions;
}

void RuntimeCore::register_reductions(std::uintptr_t* data) noexcept {
    Frame& frame = *self().frame;
    Task& task = current_task(frame);
    const auto allocate = [this](std::size_t bytes, std::size_t alignment) {
        return tasks_.allocate_argument(bytes, alignment);
    };
    reductions::allocate(data, task.group->reductions, frame.place.team_size, allocate);
    tasks_.with_books([&](TaskBook&) { task.group->reductions = data; });
}

void RuntimeCore::unregister_reductions(std::uintptr_t* data) noexcept {
    reductions::free(data, [this](void* block) { tasks_.free_argument(block); });
}

void RuntimeCore::remap_reductions(std::span<void*> pointers, std::size_t originals) noexcept {
    reductions::remap(task_reductions(), self().frame->place.thread, pointers, originals);
}

void RuntimeCore::fulfill_event(std::uint64_t event) noexcept {
    const TaskHandle handle{event};
    if (link_ != nullptr && handle.node() != parts_.endpoint->self())
        return tasks_.exchange()->fulfill_elsewhere(handle);
    std::vector<GuestReport> reports;
    tasks_.with_books([&](TaskBook& book) {
        book.fulfill(handle);
        reports.swap(book.reports());
    });
    if (!reports.empty()) tasks_.exchange()->tell(reports, false);
}

}  // namespace hiroba::omp
