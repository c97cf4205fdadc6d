// SPDX-License-Identifier: BSD-3-Clause
// Role: the books of one node's tasks: which descends from which, which may run, which waits for
// what, which are elsewhere. Pure: no thread, no clock, no message; docs/layers/tasks.md tells the
// whole.
// Invariant: a task counts on the node that created it, in its parent's `children` until it is
// complete, in its group and in live() until it is over: until what descends from it is over as
// well, if another node has it. A ready task of the team of all nodes is in the queue; each task
// but implicit ones and guests without an ancestor here hangs in one list of its parent. Children
// that a task leaves behind when its body ends hang under its parent from then on, uncounted there.
// Thread: one at a time; the TaskPool has the latch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "omp/task/task.hpp"

namespace hiroba::omp {

/// A task on its way from the node that has it to another.
struct GivenTask {
    static constexpr std::uint32_t path_max = 16;
    OutlinedFunction function = nullptr;
    void* argument = nullptr;
    std::uint32_t short_bytes = 0;  ///< of the argument, which then is the next member
    alignas(std::max_align_t) std::byte short_argument[Task::short_argument_max];
    std::uintptr_t* reductions = nullptr;
    std::int32_t priority = 0;
    NodeId data_at = nowhere;
    bool final = false;
    bool runs_anyway = false;
    bool is_target = false;
    bool in_group = false, cancelled = false;  ///< TaskGroup::named, and of that group
    /// Task::path; the last is the task itself. One whose path is full goes only to nodes in it.
    std::uint32_t path_count = 0;
    TaskHandle path[path_max];
    Icvs icvs;
};

/// How far a guest has come, for its origin.
struct GuestReport {
    TaskHandle task;  ///< of its origin
    bool body_over = false;
    bool drained = false;  ///< nothing that descends from it is left
    bool discarded = false;
};

class TaskBook {
public:
    /// `observer`: hears what becomes of tasks elsewhere; may be null.
    explicit TaskBook(NodeId self, TaskObserver* observer = nullptr)
        : self_(self), observer_(observer) {
        everywhere_.everywhere = true;
    }

    /// The team that is spread over all nodes.
    TaskTeam& everywhere() noexcept { return everywhere_; }
    const TaskTeam& everywhere() const noexcept { return everywhere_; }

    /// An implicit task, or a new one to be filled in and given to create().
    Task& make();
    /// `team` is null for a team of one thread.
    void make_implicit(Task& task, TaskTeam* team);
    /// An implicit task whose region is over.
    void release(Task& task);

    /// Enters a task of `parent`, which is being executed here.
    void create(Task& task, Task& parent);
    /// Whether `task` may run at once. Else it is blocked and becomes ready later; or, if its
    /// creator executes it itself, it merely has nothing unmet any more then.
    bool depend(Task& task, std::vector<Dependence>& dependences);
    /// One of the `unmet` tasks that `task` waits for is complete.
    void meet_one(Task& task);
    void make_ready(Task& task);
    /// Starts a task that is created and not ready: its creator executes it itself.
    void start_undeferred(Task& task);

    /// The oldest task in the team's queue, of the highest priority, started; nullptr: there is
    /// none. One whose data another node changed last comes behind the next few.
    Task* take_any(TaskTeam& team);
    /// The newest ready child of `of`, or another descendant of it.
    Task* take_descendant(Task& of);
    /// The body has returned.
    void end_body(Task& task);
    /// Fulfils the event of a task of this node. A stale handle is ignored.
    void fulfill(TaskHandle event);
    TaskHandle handle_of(const Task& task) const noexcept {
        return TaskHandle::make(self_, task.index, task.serial);
    }

    /// Takes at most half of the queue of the team of all nodes, rounded up, oldest first: of those
    /// whose data the thief changed last, then of those without such data, and of the others only
    /// if there are no such.
    void give_any(NodeId thief, std::size_t count_max, std::vector<GivenTask>& given);
    /// The same of tasks that descend from `wanted`, which are tasks of the thief that are away.
    void give_descendants(NodeId thief, std::span<const TaskHandle> wanted, std::size_t count_max,
                          std::vector<GivenTask>& given);
    /// Takes in a task of this node that comes back, or a guest.
    void adopt(const GivenTask& given);
    /// Takes in the report of `host` on a task of this node. @return an argument that is to be
    /// freed, or nullptr
    [[nodiscard]] void* hear(const GuestReport& report, NodeId host);
    /// The reports that are to be sent to the origins of guests; the caller takes them out.
    std::vector<GuestReport>& reports() noexcept { return reports_; }
    /// Appends this node's tasks that descend from `of` and are away.
    void list_away(Task& of, std::vector<TaskHandle>& away);

    /// Cancels the innermost taskgroup of `task`. False: it is in none.
    bool cancel_group(Task& task);
    /// A guest elsewhere has cancelled the group of `own`, a task of this node.
    void hear_cancel(TaskHandle own);
    /// The group of `origin`, a guest that is or may be about to come here, has been cancelled.
    void hear_cancelled(TaskHandle origin, std::uint64_t region);
    /// Whether the innermost taskgroup of `task` is cancelled.
    static bool is_cancelled(const Task& task) noexcept {
        return task.group != nullptr && task.group->meant().cancelled;
    }
    /// The cancellations of which other nodes are to be told; the caller takes them out.
    struct Cancelled {
        std::vector<TaskHandle> groups_of;  ///< to their nodes: hear_cancel()
        std::vector<TaskHandle> away;       ///< to all nodes: hear_cancelled()
        bool empty() const noexcept { return groups_of.empty() && away.empty(); }
    };
    Cancelled& cancelled() noexcept { return cancelled_; }

    /// Tasks of the team of all nodes that this node created and that are not over.
    std::uint64_t live() const noexcept { return everywhere_.live.load(std::memory_order_relaxed); }
    std::size_t queued() const noexcept { return everywhere_.queued; }
    /// Ready tasks: those in the queue, and those of teams of one thread.
    std::size_t ready() const noexcept { return ready_; }
    /// All descriptors in use.
    std::size_t used() const noexcept { return table_.size() - free_.size(); }
    /// Rises with everything that other nodes may be given.
    std::uint64_t offers() const noexcept { return offers_; }
    /// Rises with everything a waiting thread may wait for.
    std::uint64_t events() const noexcept { return events_; }
    void note_event() noexcept { ++events_; }

private:
    using Queue = TaskTeam::Queue;
    bool has(TaskHandle handle) const noexcept;
    Task& task_of(TaskHandle handle);
    void mark_cancelled(TaskGroup& group, bool tell_origin);
    static TaskList<&Task::in_tree>& brothers(const Task& task);
    static void move_to(Task& task, TaskState state);
    static Queue& queue_of(const Task& task);
    void enqueue(Task& task);
    void dequeue(Task& task);
    void start(Task& task);
    void hand_children_up(Task& task);
    void advance_end(Task& task);
    void make_complete(Task& task);
    void finish(Task& task);
    void leave_group(Task& task);
    void forget_guest(Task& task);
    bool give(Task& task, NodeId thief, std::vector<GivenTask>& given);
    template <class Suits>
    void give_from(Queue& queue, NodeId thief, std::size_t most, const Suits& suits,
                   std::vector<GivenTask>& given);
    bool is_near(const Task& task) const noexcept {
        return task.data_at == nowhere || task.data_at == self_;
    }
    /// The first of a list whose data are not elsewhere, among the next few; else the first.
    template <TaskLinks Task::*links>
    Task* near_one(Task* first, Task* TaskLinks::*next) const noexcept;
    void find_data(Task& task);
    /// Visits what hangs under `of` and is not blocked, parents first, until visit() says false.
    void walk(Task& of, const std::function<bool(Task&)>& visit);

    NodeId self_;
    TaskObserver* observer_;
    std::vector<std::unique_ptr<Task>> table_;
    std::vector<std::uint32_t> free_;
    TaskTeam everywhere_;
    std::unordered_map<std::uint64_t, Task*> guests_;  ///< by origin
    std::vector<GuestReport> reports_;
    Cancelled cancelled_;
    std::unordered_set<std::uint64_t> cancelled_guests_;  ///< in the next word's region
    std::uint64_t cancelled_in_ = 0;
    std::vector<Task*> before_;  ///< of depend()
    std::uint64_t events_ = 0, offers_ = 0;
    std::size_t ready_ = 0, ready_preferred_ = 0;  ///< of these, have a priority
    std::size_t ready_placed_ = 0;                 ///< of these, have data somewhere
};

}  // namespace hiroba::omp
