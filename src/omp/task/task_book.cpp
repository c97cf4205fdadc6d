// SPDX-License-Identifier: BSD-3-Clause
// Role: the life of a task on the node that created it, and of guests on the node that has them.
// Invariant: advance_end() alone decides that a task of this node is complete, and then that it is
// over.
#include "omp/task/task_book.hpp"

#include <algorithm>
#include <utility>

#include "base/fatal.hpp"
#include "omp/tool/task_observer.hpp"

namespace hiroba::omp {

namespace {
/// How many tasks are looked at for one whose data are here, or nowhere in particular.
constexpr std::size_t near_tries = 32;
}  // namespace

// --- descriptors ---------------------------------------------------------------------------------

Task& TaskBook::make() {
    if (free_.empty()) {
        const auto index = static_cast<std::uint32_t>(table_.size());
        if (index >> TaskHandle::index_bits != 0)
            die(exit_environment, "more than %u tasks at once on node %u", index, self_.value);
        table_.push_back(std::make_unique<Task>());
        table_.back()->index = index;
        free_.push_back(index);
    }
    Task& task = *table_[free_.back()];
    free_.pop_back();
    return task;
}

void TaskBook::make_implicit(Task& task, TaskTeam* team) {
    task.state = TaskState::implicit;
    task.team = team;
    task.group = &task.descendants;
}

void TaskBook::release(Task& task) {
    // Vectors keep their memory; a task that is over hangs nowhere and has nothing under it.
    task.successors.clear();
    task.path.clear();
    task.dependences.reset();
    task.changes = 0;
    task.executed_at = task.data_at = nowhere;
    task.short_bytes = 0;
    task.function = nullptr;
    task.argument = task.kept = nullptr;
    task.group = nullptr;
    task.parent = task.root = nullptr;
    task.origin = {};
    task.descendants = {};
    task.in_queue = task.in_tree = {};
    task.team = nullptr;
    task.owns_argument = task.final = task.runs_anyway = task.is_target = task.detached =
        task.counted = false;
    task.discarded = task.body_over = task.event_fulfilled = task.drained = task.complete = false;
    task.priority = 0;
    task.unmet = task.children = 0;
    task.state = TaskState::unused;
    ++task.serial;
    free_.push_back(task.index);
}

bool TaskBook::has(TaskHandle handle) const noexcept {
    return handle.node() == self_ && handle.index() < table_.size() &&
           handle_of(*table_[handle.index()]).raw == handle.raw;
}

Task& TaskBook::task_of(TaskHandle handle) {
    HIROBA_INVARIANT(has(handle), "node %u is asked for task %lx, which it does not have",
                     self_.value, static_cast<unsigned long>(handle.raw));
    return *table_[handle.index()];
}

// --- the queue -----------------------------------------------------------------------------------

TaskBook::Queue& TaskBook::queue_of(const Task& task) {
    return task.priority == 0 ? task.team->queue : task.team->preferred[task.priority];
}

void TaskBook::enqueue(Task& task) {
    queue_of(task).push_back(task);
    ++task.team->queued;
}

void TaskBook::dequeue(Task& task) {
    Queue& queue = queue_of(task);
    queue.remove(task);
    if (task.priority != 0 && queue.empty()) task.team->preferred.erase(task.priority);
    --task.team->queued;
}

// --- the tree ------------------------------------------------------------------------------------

/// The list of its parent in which a task of this state hangs.
TaskList<&Task::in_tree>& TaskBook::brothers(const Task& task) {
    switch (task.state) {
        case TaskState::blocked: return task.parent->blocked_children;
        case TaskState::ready: return task.parent->ready_children;
        default: return task.parent->started_children;
    }
}

void TaskBook::move_to(Task& task, TaskState state) {
    if (task.parent != nullptr) brothers(task).remove(task);
    task.state = state;
    if (task.parent != nullptr) brothers(task).push_back(task);
}

// --- creation ------------------------------------------------------------------------------------

void TaskBook::create(Task& task, Task& parent) {
    task.parent = &parent;
    task.root = parent.root;
    task.team = parent.team;
    task.group = parent.group;
    task.counted = true;
    task.state = TaskState::blocked;
    brothers(task).push_back(task);
    ++parent.children;
    ++task.group->count;
    if (task.team != nullptr) task.team->live.fetch_add(1, std::memory_order_relaxed);
}

bool TaskBook::depend(Task& task, std::vector<Dependence>& dependences) {
    Task& parent = *task.parent;
    unify(dependences);
    const auto changed =
        std::find_if(dependences.begin(), dependences.end(),
                     [](const Dependence& d) { return d.kind == DependenceKind::inout; });
    if (changed != dependences.end()) task.changes = changed->address;
    // No earlier sibling is left, so the table may be forgotten.
    if (parent.dependences == nullptr || parent.children == 1)
        parent.dependences = std::make_unique<DependenceTable>();
    before_.clear();
    parent.dependences->add({&task, task.serial}, dependences, before_);
    for (Task* const before : before_) {
        before->successors.push_back({&task, task.serial});
        ++task.unmet;
        if (before->kept != nullptr) observer_->task_waits_for(before->kept);
    }
    return task.unmet == 0;
}

void TaskBook::meet_one(Task& task) {
    if (--task.unmet != 0) return;
    // A task that is not blocked is one that its creator executes itself; the creator waits for it.
    if (task.state == TaskState::blocked) make_ready(task);
}

/// Finds the node that has the data that a task of this node changes, as far as the table knows.
void TaskBook::find_data(Task& task) {
    if (task.changes == 0 || task.origin || task.parent->dependences == nullptr) return;
    task.data_at = task.parent->dependences->changed_at(task.changes);
}

void TaskBook::make_ready(Task& task) {
    move_to(task, TaskState::ready);
    find_data(task);
    ++ready_;
    ready_placed_ += task.data_at != nowhere;
    ready_preferred_ += task.priority != 0;
    if (task.team != nullptr) {
        enqueue(task);
        if (task.team->everywhere && !task.origin) ++offers_;
    }
    ++events_;
}

void TaskBook::start_undeferred(Task& task) { move_to(task, TaskState::started); }

// --- running -------------------------------------------------------------------------------------

void TaskBook::start(Task& task) {
    if (task.team != nullptr) dequeue(task);
    move_to(task, TaskState::started);
    --ready_;
    ready_preferred_ -= task.priority != 0;
    ready_placed_ -= task.data_at != nowhere;
}

template <TaskLinks Task::*links>
Task* TaskBook::near_one(Task* first, Task* TaskLinks::*next) const noexcept {
    if (ready_placed_ == 0) return first;
    std::size_t left = near_tries;
    for (Task* task = first; task != nullptr && left != 0; task = (task->*links).*next, --left)
        if (is_near(*task)) return task;
    return first;
}

Task* TaskBook::take_any(TaskTeam& team) {
    const Queue& queue = team.preferred.empty() ? team.queue : team.preferred.begin()->second;
    Task* const task = near_one<&Task::in_queue>(queue.first(), &TaskLinks::after);
    if (task != nullptr) start(*task);
    return task;
}

Task* TaskBook::take_descendant(Task& of) {
    const auto newest = [this](Task& parent) {
        Task* best = parent.ready_children.last();
        if (best == nullptr || ready_preferred_ == 0)
            return near_one<&Task::in_tree>(best, &TaskLinks::before);
        for (Task* each = best; each != nullptr; each = each->in_tree.before)
            if (each->priority > best->priority) best = each;
        return best;
    };
    Task* found = newest(of);
    if (found == nullptr)
        walk(of, [&](Task& each) {
            if (each.state != TaskState::ready) found = newest(each);
            return found == nullptr;
        });
    if (found != nullptr) start(*found);
    return found;
}

void TaskBook::walk(Task& of, const std::function<bool(Task&)>& visit) {
    Task* at = &of;
    for (;;) {
        // Down, then to the next brother, then up. Ready tasks have nothing under them.
        Task* next = at->started_children.first();
        if (next == nullptr) next = at->ready_children.first();
        while (next == nullptr) {
            if (at == &of) return;
            next = at->in_tree.after;
            if (next == nullptr && at->state != TaskState::ready)
                next = at->parent->ready_children.first();
            if (next == nullptr) at = at->parent;
        }
        if (!visit(*next)) return;
        at = next;
    }
}

void TaskBook::end_body(Task& task) {
    task.body_over = true;
    if (!task.origin) {
        task.executed_at = self_;
        hand_children_up(task);
        task.drained = true;
        advance_end(task);
        return;
    }
    task.dependences.reset();
    task.drained = task.descendants.count == 0;
    reports_.push_back({task.origin, true, task.drained, task.discarded});
    if (task.drained) forget_guest(task);
}

void TaskBook::hand_children_up(Task& task) {
    const auto move = [&](auto& from, auto& to) {
        while (Task* const child = from.first()) {
            from.remove(*child);
            child->parent = task.parent;
            child->counted = false;
            to.push_back(*child);
        }
    };
    move(task.blocked_children, task.parent->blocked_children);
    move(task.ready_children, task.parent->ready_children);
    move(task.started_children, task.parent->started_children);
}

void TaskBook::fulfill(TaskHandle event) {
    Task& task = *table_.at(event.index());
    if (handle_of(task).raw != event.raw || !task.detached) return;
    task.event_fulfilled = true;
    if (task.kept != nullptr) observer_->task_fulfilled(task.kept);
    advance_end(task);
}

void TaskBook::advance_end(Task& task) {
    if (!task.complete && task.body_over &&
        (!task.detached || task.event_fulfilled || task.discarded))
        make_complete(task);
    if (task.complete && task.drained) finish(task);
}

void TaskBook::make_complete(Task& task) {
    task.complete = true;
    task.dependences.reset();
    if (task.changes != 0 && task.parent->dependences != nullptr)
        task.parent->dependences->note_change(task.changes, task.executed_at);
    for (const TaskRef& each : task.successors) meet_one(*each.task);
    task.successors.clear();
    if (task.counted) --task.parent->children;
    task.counted = false;
    ++events_;
}

void TaskBook::finish(Task& task) {
    // Release: pairs with TaskPool::quiet(), by which a thread without the latch waits for the last
    // task.
    if (task.team != nullptr) task.team->live.fetch_sub(1, std::memory_order_release);
    task.parent->started_children.remove(task);
    leave_group(task);
    release(task);
    ++events_;
}

void TaskBook::leave_group(Task& task) {
    Task* const root = task.root;
    if (--task.group->count != 0 || root == nullptr) return;
    if (task.group != &root->descendants || !root->body_over) return;
    reports_.push_back({root->origin, false, true, false});
    forget_guest(*root);
}

void TaskBook::forget_guest(Task& task) {
    guests_.erase(task.origin.raw);
    if (task.parent != nullptr) task.parent->started_children.remove(task);
    release(task);
    ++events_;
}

// --- between nodes -------------------------------------------------------------------------------

/// False: its path is full, and the thief is not on it.
bool TaskBook::give(Task& task, NodeId thief, std::vector<GivenTask>& given) {
    std::vector<TaskHandle> path =
        task.root != nullptr ? task.root->path : std::vector<TaskHandle>{};
    if (!task.origin) path.push_back(handle_of(task));
    // The thief finds the ancestors before its own last one in its own books.
    const auto last = std::find_if(path.rbegin(), path.rend(),
                                   [thief](TaskHandle each) { return each.node() == thief; });
    if (last != path.rend()) path.erase(path.begin(), last.base() - 1);
    if (path.size() > GivenTask::path_max) return false;

    GivenTask& out = given.emplace_back();
    out.function = task.function;
    out.argument = task.argument;
    out.short_bytes = task.short_bytes;
    std::copy_n(task.short_argument, task.short_bytes, out.short_argument);
    out.data_at = task.data_at;
    out.reductions = task.group->reductions;
    out.priority = task.priority;
    out.final = task.final;
    out.runs_anyway = task.runs_anyway;
    out.is_target = task.is_target;
    out.in_group = task.group->is_named();
    out.cancelled = is_cancelled(task);
    out.icvs = task.icvs;
    out.path_count = static_cast<std::uint32_t>(path.size());
    std::copy(path.begin(), path.end(), out.path);
    start(task);
    if (task.origin)
        forget_guest(task);
    else
        task.state = TaskState::away;
    return true;
}

void TaskBook::give_any(NodeId thief, std::size_t count_max, std::vector<GivenTask>& given) {
    TaskTeam& team = everywhere_;
    const std::size_t most = std::min(count_max, (team.queued + 1) / 2);
    const auto from_all = [&](const auto& suits) {
        for (std::int32_t last = INT32_MAX; given.size() < most;) {
            const auto next = std::find_if(team.preferred.begin(), team.preferred.end(),
                                           [last](const auto& each) { return each.first < last; });
            if (next == team.preferred.end()) break;
            last = next->first;  // The list may vanish.
            give_from(next->second, thief, most, suits, given);
        }
        give_from(team.queue, thief, most, suits, given);
    };
    if (ready_placed_ != 0) {
        from_all([thief](const Task& task) { return task.data_at == thief; });
        from_all([](const Task& task) { return task.data_at == nowhere; });
        if (!given.empty()) return;
    }
    from_all([](const Task&) { return true; });
}

template <class Suits>
void TaskBook::give_from(Queue& queue, NodeId thief, std::size_t most, const Suits& suits,
                         std::vector<GivenTask>& given) {
    for (Task* task = queue.first(); task != nullptr && given.size() < most;) {
        Task* const next = task->in_queue.after;
        if (suits(*task)) give(*task, thief, given);
        task = next;
    }
}

void TaskBook::give_descendants(NodeId thief, std::span<const TaskHandle> wanted,
                                std::size_t count_max, std::vector<GivenTask>& given) {
    const auto is_wanted = [&](TaskHandle handle) {
        return std::find(wanted.begin(), wanted.end(), handle) != wanted.end();
    };
    std::vector<Task*> found;
    for (const auto& entry : guests_) {
        Task* const guest = entry.second;
        if (std::none_of(guest->path.begin(), guest->path.end(), is_wanted)) continue;
        if (guest->state == TaskState::ready) {
            found.push_back(guest);
            continue;
        }
        // A guest below this one is found on its own.
        walk(*guest, [&](Task& each) {
            if (each.state == TaskState::ready && each.root == guest) found.push_back(&each);
            return found.size() < 2 * count_max;
        });
    }
    const std::size_t most = std::min(count_max, (found.size() + 1) / 2);
    for (std::size_t i = 0; i < most; ++i) give(*found[i], thief, given);
}

void TaskBook::adopt(const GivenTask& given) {
    const TaskHandle self = given.path[given.path_count - 1];
    if (self.node() == self_) {
        Task& task = task_of(self);
        HIROBA_INVARIANT(task.state == TaskState::away && !task.body_over,
                         "task %lx comes back and is not away",
                         static_cast<unsigned long>(self.raw));
        make_ready(task);
        return;
    }
    Task& task = make();
    task.function = given.function;
    task.argument = given.argument;
    task.short_bytes = given.short_bytes;
    std::copy_n(given.short_argument, given.short_bytes, task.short_argument);
    task.data_at = given.data_at;
    task.priority = given.priority;
    task.final = given.final;
    task.icvs = given.icvs;
    task.runs_anyway = given.runs_anyway;
    task.is_target = given.is_target;
    task.team = &everywhere_;
    task.origin = self;
    task.root = &task;
    task.descendants.reductions = given.reductions;
    task.descendants.guest = self;
    task.descendants.named = given.in_group;
    task.descendants.cancelled = given.cancelled || cancelled_guests_.contains(self.raw);
    task.group = &task.descendants;
    task.state = TaskState::blocked;
    const TaskHandle under = given.path[0];
    if (under.node() == self_) {
        task.parent = &task_of(under);
        brothers(task).push_back(task);
        if (task.parent->root != nullptr) task.path = task.parent->root->path;
    }
    task.path.insert(task.path.end(), given.path, given.path + given.path_count);
    guests_.emplace(self.raw, &task);
    make_ready(task);
}

void* TaskBook::hear(const GuestReport& report, NodeId host) {
    Task& task = task_of(report.task);
    HIROBA_INVARIANT(task.state == TaskState::away, "a report on task %lx, which is not away",
                     static_cast<unsigned long>(report.task.raw));
    void* const argument = report.body_over && task.owns_argument ? task.argument : nullptr;
    if (report.body_over) task.executed_at = host;
    task.discarded |= report.discarded;
    if (report.body_over && task.kept != nullptr) {
        observer_->task_ended_elsewhere(task.kept);
        if (!task.detached) task.kept = nullptr;
    }
    task.body_over |= report.body_over;
    task.drained |= report.drained;
    advance_end(task);
    return argument;
}

// --- cancellation --------------------------------------------------------------------------------

/// Tells the nodes that have tasks of the group. Each tells those to which it gave tasks of it in
/// turn.
void TaskBook::mark_cancelled(TaskGroup& group, bool tell_origin) {
    if (group.cancelled) return;
    group.cancelled = true;
    if (tell_origin && group.guest) cancelled_.groups_of.push_back(group.guest);
    for (const auto& each : table_)
        if (each->state == TaskState::away && &each->group->meant() == &group)
            cancelled_.away.push_back(handle_of(*each));
}

bool TaskBook::cancel_group(Task& task) {
    TaskGroup& group = task.group->meant();
    if (!group.is_named()) return false;
    mark_cancelled(group, true);
    return true;
}

void TaskBook::hear_cancel(TaskHandle own) {
    // The task may be over by now: a descendant of a task can outlive it.
    if (has(own) && task_of(own).group != nullptr) cancel_group(task_of(own));
}

void TaskBook::hear_cancelled(TaskHandle origin, std::uint64_t region) {
    if (region > cancelled_in_) cancelled_guests_.clear();  // Guests of former regions are over.
    cancelled_in_ = region;
    cancelled_guests_.insert(origin.raw);
    const auto guest = guests_.find(origin.raw);
    if (guest != guests_.end()) mark_cancelled(guest->second->descendants, false);
}

void TaskBook::list_away(Task& of, std::vector<TaskHandle>& away) {
    walk(of, [&](Task& each) {
        if (each.state == TaskState::away) away.push_back(handle_of(each));
        return true;
    });
}

}  // namespace hiroba::omp
