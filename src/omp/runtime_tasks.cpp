// SPDX-License-Identifier: BSD-3-Clause
// Role: explicit tasks: making them, executing them, waiting for them.
// Invariant: a thread that waits in a task executes only descendants of that task (the task
// scheduling constraint, every task being tied); in a barrier, any of the team. What a task's body
// left to tell its origin is told before the thread does anything else.
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "base/program_call.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "omp/runtime_core.hpp"
#include "omp/task/reductions.hpp"

namespace hiroba::omp {

namespace {
/// A node with so many tasks that wait per thread has enough of them: further ones are executed by
/// whoever makes them.
constexpr std::size_t queued_per_thread_max = 256;
/// So many in all, most of them waiting for others: the same, once those are over.
constexpr std::size_t used_max = std::size_t{1} << 20;
/// How long to wait for descendants that are on other nodes before asking for them once more.
constexpr std::uint64_t ask_again_min_ns = 500'000, ask_again_max_ns = 20'000'000;
}  // namespace

Task& RuntimeCore::current_task(Frame& frame) noexcept {
    if (frame.task == nullptr) {
        const bool shared = frame.place.team_size > 1;
        frame.implicit = tasks_.with_books([shared](TaskBook& book) {
            Task& task = book.make();
            book.make_implicit(task, shared);
            return &task;
        });
        frame.task = frame.implicit;
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
    return frame.task != frame.implicit ? frame.task->icvs : frame.icvs;
}

bool RuntimeCore::in_final() noexcept {
    const Task* const task = self().frame->task;
    return task != nullptr && task->final;
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
    Task& parent = current_task(frame);
    const std::size_t enough = queued_per_thread_max * std::max(parts_.threads_per_node, 1u);
    const bool may_wait = wanted.deferred && !parent.final && frame.place.level > 0;

    Task* task = nullptr;
    bool deferred = may_wait;
    std::uint64_t event = 0;
    tasks_.with_books([&](TaskBook& book) {
        // A detached one may be waited for by what its creator does next.
        if (wanted.event == nullptr && (book.queued() >= enough || book.used() >= used_max))
            deferred = false;
        task = &book.make();
        task->function = wanted.function;
        task->priority = wanted.priority;
        task->final = wanted.final || parent.final;
        task->icvs = icvs();
        task->detached = wanted.event != nullptr;
        event = book.handle_of(*task).raw;
        book.create(*task, parent);
        if (!deferred) book.start_undeferred(*task);
    });
    // What the body is given must be there before the task may be started.
    if (wanted.event != nullptr) {
        *wanted.event = event;
        if (wanted.data != nullptr) std::memcpy(wanted.data, &event, sizeof event);
    }
    task->argument = wanted.data;
    const bool copies = wanted.bytes != 0 && (deferred || wanted.copy != nullptr);
    if (copies) {
        task->argument = tasks_.allocate_argument(wanted.bytes, wanted.alignment);
        task->owns_argument = true;
        if (wanted.copy != nullptr)
            call_program(wanted.copy, task->argument, wanted.data);
        else
            std::memcpy(task->argument, wanted.data, wanted.bytes);
    }
    if (wanted.front != nullptr)
        std::memcpy(task->argument, wanted.front, 2 * sizeof *wanted.front);
    if (!deferred) return run_undeferred(thread, *task, wanted);
    std::vector<Dependence> dependences = wanted.dependences;
    tasks_.with_books([&](TaskBook& book) {
        if (dependences.empty() || book.depend(*task, dependences)) book.make_ready(*task);
    });
}

void RuntimeCore::run_undeferred(ThreadState& thread, Task& task, const NewTask& wanted) noexcept {
    if (!wanted.dependences.empty()) {
        std::vector<Dependence> dependences = wanted.dependences;
        const bool at_once =
            tasks_.with_books([&](TaskBook& book) { return book.depend(task, dependences); });
        if (!at_once)
            work_until(thread, task.parent, [&] {
                return tasks_.with_books([&](TaskBook&) { return task.unmet == 0; });
            });
    }
    execute(thread, task);
}

// --- executing -----------------------------------------------------------------------------------

void RuntimeCore::execute(ThreadState& thread, Task& task) noexcept {
    Frame& frame = *thread.frame;
    Task* const outer = frame.task;
    frame.task = &task;
    if (task.function != nullptr) call_program(task.function, task.argument);
    frame.task = outer;
    tasks_executed_.fetch_add(1, std::memory_order_relaxed);
    end_body(task);
}

void RuntimeCore::end_body(Task& task) noexcept {
    // A guest's argument is its origin's to free.
    if (task.owns_argument) tasks_.free_argument(task.argument);
    task.owns_argument = false;
    std::vector<GuestReport> reports;
    tasks_.with_books([&](TaskBook& book) {
        book.end_body(task);
        if (!book.reports().empty()) reports.swap(book.reports());
    });
    if (!reports.empty()) tasks_.exchange()->tell(reports);
}

void RuntimeCore::work_until(ThreadState& thread, Task* of, Condition done) noexcept {
    std::uint64_t patience_ns = ask_again_min_ns;
    for (;;) {
        const std::uint64_t seen = tasks_.events();
        if (done()) break;
        tasks_.attend();
        Task* const task = tasks_.with_books([of](TaskBook& book) {
            return of == nullptr ? book.take_any() : book.take_descendant(*of);
        });
        if (task != nullptr) {
            execute(thread, *task);
            patience_ns = ask_again_min_ns;
        } else if (tasks_.events() == seen) {
            wait_for_work(of, seen, patience_ns, done);
        }
    }
    if (tasks_.exchange() != nullptr && tasks_.exchange()->has_work())
        tasks_.exchange()->call_clerk();
}

/// Nothing was to be had when events() was `seen`.
void RuntimeCore::wait_for_work(Task* of, std::uint64_t seen, std::uint64_t& patience_ns,
                                Condition done) noexcept {
    if (link_ == nullptr) return tasks_.wait_here(seen, patience_, done);
    std::vector<TaskHandle> away;
    if (of != nullptr) tasks_.with_books([&](TaskBook& book) { book.list_away(*of, away); });
    if (!away.empty()) tasks_.exchange()->ask_for(away);
    const std::uint64_t until_ns = away.empty() ? net::Endpoint::forever : now_ns() + patience_ns;
    patience_ns = std::min(2 * patience_ns, ask_again_max_ns);
    {
        TaskPool::Waiting waiting{tasks_};
        waiting.will_attend();
        on_runtime_stack([&] {
            parts_.endpoint->wait_until(
                [&] { return tasks_.stirs(seen) || parts_.interruptions.are_pending(); }, until_ns);
        });
    }
    if (parts_.interruptions.are_pending()) parts_.interruptions.serve();
}

void RuntimeCore::help(ThreadState& thread) noexcept {
    for (;;) {
        const std::uint64_t seen = tasks_.events();
        tasks_.attend();
        Task* const task = tasks_.with_books([](TaskBook& book) { return book.take_any(); });
        if (task != nullptr) {
            execute(thread, *task);
        } else if (tasks_.events() == seen) {
            thread.events_seen = seen;
            return tasks_.exchange()->ask_any();
        }
    }
}

// --- waiting -------------------------------------------------------------------------------------

void RuntimeCore::task_wait() noexcept {
    ThreadState& thread = self();
    Task* const task = thread.frame->task;
    if (task == nullptr) return;
    work_until(thread, task, [this, task] {
        return tasks_.with_books([task](TaskBook&) { return task->children == 0; });
    });
}

void RuntimeCore::task_wait_for(std::vector<Dependence> dependences) noexcept {
    NewTask nothing;
    nothing.deferred = false;
    nothing.dependences = std::move(dependences);
    if (self().frame->task != nullptr) task(nothing);
}

void RuntimeCore::task_yield() noexcept {
    ThreadState& thread = self();
    Task* const of = thread.frame->task;
    if (of == nullptr) return;
    tasks_.attend();
    Task* const task =
        tasks_.with_books([of](TaskBook& book) { return book.take_descendant(*of); });
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
    work_until(thread, &task, [this, group] {
        return tasks_.with_books([group](TaskBook&) { return group->count == 0; });
    });
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
    return current_task(*self().frame).group->reductions;
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
    if (!reports.empty()) tasks_.exchange()->tell(reports);
}

}  // namespace hiroba::omp
