// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node knows of one task, and of one taskgroup.
// Invariant: private to the node, never in the program's memory; read and written under the latch
// of the node's TaskPool, but for what the executing thread alone uses. A descriptor is never given
// back to the system, and its serial number changes when it is used anew: a thread that kept a
// reference can tell.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "omp/icv/icv.hpp"
#include "omp/omp.hpp"
#include "omp/task/dependences.hpp"

namespace hiroba::omp {

struct Task;
struct TaskTeam;

/// Where a task is linked: one of these for the node's queue, one for its place in the tree.
struct TaskLinks {
    Task* before = nullptr;
    Task* after = nullptr;
};

/// A list through one of the links of its tasks.
template <TaskLinks Task::*links>
class TaskList {
public:
    bool empty() const noexcept { return first_ == nullptr; }
    Task* first() const noexcept { return first_; }
    Task* last() const noexcept { return last_; }
    void push_back(Task& task) noexcept;
    void remove(Task& task) noexcept;

private:
    Task* first_ = nullptr;
    Task* last_ = nullptr;
};

/// Names a task over the whole job: node, place in that node's table, and use of that place.
struct TaskHandle {
    std::uint64_t raw = 0;
    static constexpr unsigned serial_bits = 24, index_bits = 24;

    static TaskHandle make(NodeId node, std::uint32_t index, std::uint32_t serial) noexcept {
        return {std::uint64_t{node.value + 1} << (serial_bits + index_bits) |
                std::uint64_t{index} << serial_bits | (serial & ((1u << serial_bits) - 1))};
    }
    NodeId node() const noexcept {
        return NodeId{static_cast<std::uint32_t>(raw >> (serial_bits + index_bits)) - 1};
    }
    std::uint32_t index() const noexcept {
        return static_cast<std::uint32_t>(raw >> serial_bits) & ((1u << index_bits) - 1);
    }
    std::uint32_t serial() const noexcept {
        return static_cast<std::uint32_t>(raw) & ((1u << serial_bits) - 1);
    }
    explicit operator bool() const noexcept { return raw != 0; }
    bool operator==(const TaskHandle&) const = default;
};

/// Tasks created in a taskgroup region, and their descendants outside inner ones, that are not
/// over.
struct TaskGroup {
    TaskGroup* outer = nullptr;
    std::uint64_t count = 0;
    bool cancelled = false;
    std::uintptr_t* reductions = nullptr;  ///< the program's innermost descriptor (reductions.hpp)
    bool implied = false;  ///< by the task reductions of a worksharing construct; cannot be named
    /// Stands for the group of this guest at its origin, which is one of the program's iff
    /// `named`.
    TaskHandle guest;
    bool named = false;

    /// Whether the program can name it: not what merely gathers the tasks of an implicit one.
    bool is_named() const noexcept { return outer != nullptr || named; }
    /// The one that `cancel taskgroup` means.
    TaskGroup& meant() noexcept {
        return implied && outer != nullptr && outer->is_named() ? *outer : *this;
    }
};

enum class TaskState : std::uint8_t {
    unused,
    blocked,   ///< waits for tasks it depends on
    ready,     ///< may be started, by the first thread or node that takes it
    started,   ///< a thread of this node executes it, or its body has ended and something is left
    away,      ///< another node has it
    implicit,  ///< of a thread of a team; never over
};

/// No node.
inline constexpr NodeId nowhere{~0u};

/// The code that a task executes, its data, and how it is executed.
struct TaskWork {
    static constexpr std::size_t short_argument_max = 64;
    OutlinedFunction function = nullptr;
    void* argument = nullptr;  ///< unless it is short
    /// Bytes of a short argument: kept here, in no block of the program's memory, until the thread
    /// that executes the body puts it on its stack.
    std::uint32_t short_bytes = 0;
    alignas(std::max_align_t) std::byte short_argument[short_argument_max];
    bool owns_argument = false;  ///< the block at `argument` is freed when the body has ended
    bool final = false;
    bool runs_anyway = false;  ///< even when cancelled: its argument was made by constructors
    bool is_target = false;    ///< for a tool
    bool detached = false;     ///< over only when its event is fulfilled, too
    std::int32_t priority = 0;
    /// The node that changed last what it changes (`changes` below).
    NodeId data_at = nowhere;
    Icvs icvs;
    void* kept = nullptr;  ///< by the TaskObserver
};

/// How far it is, and what waits for it.
struct TaskProgress {
    TaskState state = TaskState::unused;
    bool discarded = false;  ///< cancelled: its event is never fulfilled
    bool body_over = false, event_fulfilled = false, drained = false;
    bool complete = false;       ///< for its parent and for those that depend on it
    std::uint32_t unmet = 0;     ///< tasks it waits for
    std::uint32_t children = 0;  ///< its own that are not complete
    std::uintptr_t changes = 0;  ///< the first address that it is to be the only one to change
    NodeId executed_at = nowhere;
    std::vector<TaskRef> successors;
    std::unique_ptr<DependenceTable> dependences;  ///< of its children
};

/// The origin of a guest: another node created the task and counts it.
struct TaskOrigin {
    TaskHandle origin;      ///< set iff it is a guest
    TaskGroup descendants;  ///< the group of what a guest or implicit task creates
    /// The tasks it descends from that are away from their nodes, outermost first, with itself at
    /// the end.
    std::vector<TaskHandle> path;
};

/// TaskWork's fields are written before the task is linked anywhere.
struct Task : TaskWork, TaskProgress, TaskOrigin {
    TaskTeam* team = nullptr;  ///< whose threads may execute it; null: of a team of one thread
    TaskGroup* group = nullptr;

    // Where it is in the tree of this node's tasks.
    Task* parent = nullptr;  ///< null: implicit, or a guest that has no ancestor here
    Task* root = nullptr;    ///< the guest it descends from, itself if it is one; null: none
    bool counted = false;    ///< among its parent's `children`
    TaskLinks in_queue, in_tree;
    TaskList<&Task::in_tree> blocked_children, ready_children, started_children;

    std::uint32_t index = 0;  ///< in the table, for good
    std::uint32_t serial = 0;
};

/// The tasks of one team of several threads, on this node.
struct TaskTeam {
    using Queue = TaskList<&Task::in_queue>;
    bool everywhere = false;  ///< of the team that is spread over all nodes: its tasks travel
    Queue queue;              ///< ready ones of priority 0
    std::map<std::int32_t, Queue, std::greater<>> preferred;  ///< of higher ones
    std::size_t queued = 0;
    std::atomic<std::uint64_t> live{0};  ///< created here and not over; read without the latch
};

template <TaskLinks Task::*links>
void TaskList<links>::push_back(Task& task) noexcept {
    (task.*links) = {last_, nullptr};
    (last_ != nullptr ? (last_->*links).after : first_) = &task;
    last_ = &task;
}

template <TaskLinks Task::*links>
void TaskList<links>::remove(Task& task) noexcept {
    TaskLinks& own = task.*links;
    (own.before != nullptr ? (own.before->*links).after : first_) = own.after;
    (own.after != nullptr ? (own.after->*links).before : last_) = own.before;
    own = {};
}

}  // namespace hiroba::omp
