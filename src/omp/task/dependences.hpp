// SPDX-License-Identifier: BSD-3-Clause
// Role: which of a task's earlier siblings a new one must wait for (OpenMP 5.2, section 15.9.5).
// Invariant: pure; knows tasks only by reference. For each address it keeps the newest set of tasks
// that may run side by side, and the set before it, on which each of the newest depends: a task of
// another kind waits for the newest set, and becomes the next one. A task that depends on all
// memory waits for the newest set of each address, and is the newest set of each from then on, also
// of those that are named for the first time later. A reference to a task that is complete counts
// for nothing.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"

namespace hiroba::omp {

struct Task;

/// A task, as long as it is the one it was.
struct TaskRef {
    Task* task = nullptr;
    std::uint32_t serial = 0;
    /// The task, unless it is complete or its descriptor serves another.
    Task* incomplete() const noexcept;
};

/// The numbers are those a depend object holds.
enum class DependenceKind : std::uint8_t {
    in = 1,
    out = 2,
    inout = 3,
    mutexinoutset = 4,
    inoutset = 5,
    all_memory = 6  ///< omp_all_memory, out or inout; in no depend object, and without an address
};

struct Dependence {
    std::uintptr_t address = 0;
    DependenceKind kind = DependenceKind::in;
};

/// Gives each address one entry: of several, the strictest; all memory leaves no other. Tasks of a
/// mutexinoutset are put in the order of their creation, as inout: that is one of the orders they
/// may run in.
void unify(std::vector<Dependence>& dependences);

class DependenceTable {
public:
    /// Adds `task` with `dependences` (unified), and appends the tasks it must wait for, maybe some
    /// twice.
    void add(TaskRef task, std::span<const Dependence> dependences, std::vector<Task*>& before);
    std::size_t addresses() const noexcept { return entries_.size(); }
    /// The node that a task which changed `address` was executed on last, as note_change() was
    /// told: its data are there. Else no node.
    NodeId changed_at(std::uintptr_t address) const noexcept;
    /// Notes that a task on `node` has changed `address`. Nothing is kept of an address that no
    /// task has named.
    void note_change(std::uintptr_t address, NodeId node) noexcept;

private:
    struct Entry {
        DependenceKind kind = DependenceKind::out;
        std::vector<TaskRef> newest, former;
        std::size_t purge_at = purge_at_min;
        NodeId changed_at{~0u};
    };
    static constexpr std::size_t purge_at_min = 8;
    Entry& entry_of(std::uintptr_t address);
    void add_for_all_memory(TaskRef task, std::vector<Task*>& before);
    static void append_incomplete(const std::vector<TaskRef>& from, std::vector<Task*>& to);
    static void purge(Entry& entry);

    std::unordered_map<std::uintptr_t, Entry> entries_;
    TaskRef on_all_memory_;  ///< the last such task
};

}  // namespace hiroba::omp
