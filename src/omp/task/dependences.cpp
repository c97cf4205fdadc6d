// SPDX-License-Identifier: BSD-3-Clause
// Role: sets of siblings by address.
// Invariant: what is complete is dropped at the latest when a set has doubled since the last time,
// so that an address many tasks read costs each of them a constant.
#include "omp/task/dependences.hpp"

#include <algorithm>

#include "omp/task/task.hpp"

namespace hiroba::omp {

Task* TaskRef::incomplete() const noexcept {
    return task != nullptr && task->serial == serial && !task->complete ? task : nullptr;
}

void unify(std::vector<Dependence>& dependences) {
    const auto is_on_all = [](const Dependence& each) {
        return each.kind == DependenceKind::all_memory;
    };
    if (std::any_of(dependences.begin(), dependences.end(), is_on_all)) {
        dependences.assign(1, {0, DependenceKind::all_memory});
        return;
    }
    for (Dependence& each : dependences)
        if (each.kind == DependenceKind::out || each.kind == DependenceKind::mutexinoutset)
            each.kind = DependenceKind::inout;
    std::sort(dependences.begin(), dependences.end(),
              [](const Dependence& a, const Dependence& b) { return a.address < b.address; });
    std::size_t kept = 0;
    for (const Dependence& each : dependences) {
        if (kept == 0 || dependences[kept - 1].address != each.address) {
            dependences[kept++] = each;
        } else if (dependences[kept - 1].kind != each.kind) {
            dependences[kept - 1].kind = DependenceKind::inout;
        }
    }
    dependences.resize(kept);
}

void DependenceTable::append_incomplete(const std::vector<TaskRef>& from, std::vector<Task*>& to) {
    for (const TaskRef& each : from)
        if (Task* const task = each.incomplete()) to.push_back(task);
}

void DependenceTable::purge(Entry& entry) {
    std::erase_if(entry.newest, [](const TaskRef& each) { return each.incomplete() == nullptr; });
    entry.purge_at = std::max(purge_at_min, 2 * entry.newest.size());
}

DependenceTable::Entry& DependenceTable::entry_of(std::uintptr_t address) {
    const auto [found, is_new] = entries_.try_emplace(address);
    if (is_new && on_all_memory_.incomplete() != nullptr) {
        found->second.kind = DependenceKind::inout;
        found->second.newest.push_back(on_all_memory_);
    }
    return found->second;
}

void DependenceTable::add_for_all_memory(TaskRef task, std::vector<Task*>& before) {
    // One that came behind every address of then is in the way even where none is known.
    if (Task* const last = on_all_memory_.incomplete()) before.push_back(last);
    for (auto& [address, entry] : entries_) {
        append_incomplete(entry.newest, before);
        entry.former.clear();
        entry.newest.assign(1, task);
        entry.kind = DependenceKind::inout;
    }
    on_all_memory_ = task;
}

void DependenceTable::add(TaskRef task, std::span<const Dependence> dependences,
                          std::vector<Task*>& before) {
    for (const Dependence& each : dependences) {
        if (each.kind == DependenceKind::all_memory) {
            add_for_all_memory(task, before);
            continue;
        }
        Entry& entry = entry_of(each.address);
        const bool joins = each.kind != DependenceKind::inout && each.kind == entry.kind;
        if (!joins) {
            entry.former.swap(entry.newest);
            entry.newest.clear();
            entry.kind = each.kind;
            std::erase_if(entry.former,
                          [](const TaskRef& one) { return one.incomplete() == nullptr; });
        }
        append_incomplete(entry.former, before);
        entry.newest.push_back(task);
        if (entry.newest.size() >= entry.purge_at) purge(entry);
    }
}

NodeId DependenceTable::changed_at(std::uintptr_t address) const noexcept {
    const auto entry = entries_.find(address);
    return entry != entries_.end() ? entry->second.changed_at : nowhere;
}

void DependenceTable::note_change(std::uintptr_t address, NodeId node) noexcept {
    const auto entry = entries_.find(address);
    if (entry != entries_.end()) entry->second.changed_at = node;
}

}  // namespace hiroba::omp
