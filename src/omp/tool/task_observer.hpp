// SPDX-License-Identifier: BSD-3-Clause
// Role: what the runtime tells of threads and tasks, where only it knows.
// Invariant: called on the thread it is about, without a latch, unless said otherwise. Without
// a tool there is no observer, and a place that tells is one load and a branch.
#pragma once

namespace hiroba::omp {

struct NewTask;

class TaskObserver {
public:
    /// The thread leaves Runtime::work().
    virtual void thread_ends() noexcept = 0;
    /// A task has been made. @return what the runtime keeps with it and hands back here
    virtual void* task_created(const NewTask& wanted, bool deferred, bool final) noexcept = 0;
    /// The task that the calling thread is making waits for the task of which `before` is kept.
    /// Under a latch; tell_waits() comes without it.
    virtual void task_waits_for(void* before) noexcept = 0;
    /// Tells which tasks the new task waits for. `kept` is the new task's, which does not begin
    /// meanwhile.
    virtual void tell_waits(void* kept) noexcept = 0;
    /// A task's body is about to be executed. `kept` is null for a task that came from another
    /// node, and is set here. `stack`: an address in the frame that calls the body.
    virtual void task_begins(void*& kept, bool is_target, void* stack) noexcept = 0;
    /// The body has ended; no thread or node has been told yet. `kept` may be gone.
    virtual void task_ends(void* kept, bool discarded) noexcept = 0;
    /// A task's body has ended on another node. Any thread, maybe none of the program's; under a
    /// latch.
    virtual void task_ended_elsewhere(void* kept) noexcept = 0;
    /// A task's event is fulfilled. Any thread; under a latch.
    virtual void task_fulfilled(void* kept) noexcept = 0;

protected:
    ~TaskObserver() = default;
};

}  // namespace hiroba::omp
