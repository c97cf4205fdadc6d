// SPDX-License-Identifier: BSD-3-Clause
// Role: the runtime's functions that a tool gets by ompt_function_lookup_t.
// Invariant: signatures are the standard's. What may be called in a signal handler only reads what
// the calling thread has written.
// Source: OpenMP 5.2, section 19.6.
#include "abi/ompt/entry_points.hpp"

#include <sched.h>

#include <array>
#include <string_view>
#include <utility>

#include "abi/gomp/runtime.hpp"
#include "omp/tool/tool.hpp"

namespace hiroba::abi {
namespace {

using namespace omp::ompt;
using omp::Tool;
using omp::tool_thread_if_known;
using omp::ToolTask;
using omp::ToolTeam;
using omp::ToolThread;

/// The answers of functions that look for a region or a task.
constexpr int none_there = 0, known = 2;

constexpr std::pair<State, const char*> states[] = {
    {State::undefined, "ompt_state_undefined"},
    {State::work_serial, "ompt_state_work_serial"},
    {State::work_parallel, "ompt_state_work_parallel"},
    {State::wait_barrier_implicit_parallel, "ompt_state_wait_barrier_implicit_parallel"},
    {State::wait_barrier_implicit_workshare, "ompt_state_wait_barrier_implicit_workshare"},
    {State::wait_barrier_explicit, "ompt_state_wait_barrier_explicit"},
    {State::wait_barrier_implementation, "ompt_state_wait_barrier_implementation"},
    {State::wait_taskwait, "ompt_state_wait_taskwait"},
    {State::wait_taskgroup, "ompt_state_wait_taskgroup"},
    {State::wait_lock, "ompt_state_wait_lock"},
    {State::wait_critical, "ompt_state_wait_critical"},
    {State::wait_atomic, "ompt_state_wait_atomic"},
    {State::wait_ordered, "ompt_state_wait_ordered"},
    {State::idle, "ompt_state_idle"},
    {State::overhead, "ompt_state_overhead"},
};

int enumerate_states(int now, int* next, const char** name) noexcept {
    std::size_t at = 0;
    while (at < std::size(states) && static_cast<int>(states[at].first) != now) ++at;
    if (at + 1 >= std::size(states)) return 0;
    *next = static_cast<int>(states[at + 1].first);
    *name = states[at + 1].second;
    return 1;
}

/// 0 begins: an implementation that has no number of its own.
int enumerate_mutex_implementations(int now, int* next, const char** name) noexcept {
    if (now != 0) return 0;
    *next = 1;
    *name = "hiroba_mutex_of_the_job";
    return 1;
}

int set_callback(int event, Callback callback) noexcept {
    Tool* const tool = Tool::here();
    return static_cast<int>(tool != nullptr ? tool->set_callback(event, callback) : Set::error);
}

int get_callback(int event, Callback* callback) noexcept {
    Tool* const tool = Tool::here();
    if (tool == nullptr || !(is_told(event) || is_of_devices(event))) return 0;
    *callback = tool->callback(event);
    return *callback != nullptr;
}

Data* get_thread_data() noexcept {
    ToolThread* const thread = tool_thread_if_known();
    return thread != nullptr ? &thread->data : nullptr;
}

int get_state(std::uint64_t* wait_id) noexcept {
    const ToolThread* const thread = tool_thread_if_known();
    if (thread == nullptr) return static_cast<int>(State::undefined);
    const bool waits_for_mutex =
        thread->state >= State::wait_mutex && thread->state <= State::wait_ordered;
    if (wait_id != nullptr) *wait_id = waits_for_mutex ? thread->wait_id : 0;
    return static_cast<int>(thread->state);
}

ToolTask* task_at(int level) noexcept {
    const ToolThread* const thread = tool_thread_if_known();
    ToolTask* task = thread != nullptr ? thread->task : nullptr;
    for (; task != nullptr && level > 0; --level)
        task = task->below != nullptr  ? task->below
               : task->team != nullptr ? task->team->met_by
                                       : nullptr;
    return level < 0 ? nullptr : task;
}

int get_parallel_info(int level, Data** data, int* team_size) noexcept {
    const ToolTask* const task = task_at(0);
    const ToolTeam* team = task != nullptr ? task->team : nullptr;
    for (; team != nullptr && level > 0; --level)
        team = team->met_by != nullptr ? team->met_by->team : nullptr;
    if (team == nullptr || level < 0) return none_there;
    if (data != nullptr) *data = const_cast<Data*>(&team->data);
    if (team_size != nullptr) *team_size = static_cast<int>(team->size);
    return known;
}

int get_task_info(int level, int* flags, Data** data, Frame** frame, Data** parallel_data,
                  int* thread_num) noexcept {
    ToolTask* const task = task_at(level);
    if (task == nullptr) return none_there;
    if (flags != nullptr) *flags = task->flags;
    if (data != nullptr) *data = &task->data;
    if (frame != nullptr) *frame = &task->frame;
    if (parallel_data != nullptr)
        *parallel_data = task->team != nullptr ? &task->team->data : nullptr;
    if (thread_num != nullptr) *thread_num = static_cast<int>(task->thread);
    return known;
}

/// Arguments of tasks are in the job's memory, in blocks the runtime does not list.
int get_task_memory(void**, std::size_t*, int) noexcept { return 0; }

int get_num_procs() noexcept { return static_cast<int>(runtime().processors()); }

int get_num_places() noexcept { return static_cast<int>(runtime().environment().places.size()); }

int get_place_proc_ids(int place, int room, int* ids) noexcept {
    const auto& places = runtime().environment().places;
    if (place < 0 || static_cast<std::size_t>(place) >= places.size()) return 0;
    const auto& processors = places[static_cast<std::size_t>(place)];
    int count = 0;
    for (const auto processor : processors) {
        if (count < room) ids[count] = static_cast<int>(processor);
        ++count;
    }
    return count;
}

int get_place_num() noexcept {
    const omp::Binding binding = runtime().binding();
    return binding.place == omp::Binding::nowhere ? -1 : static_cast<int>(binding.place);
}

int get_partition_place_nums(int room, int* numbers) noexcept {
    const omp::Binding binding = runtime().binding();
    for (std::uint32_t i = 0; i < binding.count && static_cast<int>(i) < room; ++i)
        numbers[i] = static_cast<int>(binding.first + i);
    return static_cast<int>(binding.count);
}

int get_proc_id() noexcept { return sched_getcpu(); }

std::uint64_t get_unique_id() noexcept {
    Tool* const tool = Tool::here();
    return tool != nullptr ? tool->unique_id() : 0;
}

void finalize_tool() noexcept {
    if (Tool* const tool = Tool::here(); tool != nullptr) tool->finalize();
}

// The only device is the host.
int get_target_info(std::uint64_t*, std::uint64_t*, std::uint64_t*) noexcept { return 0; }
int get_num_devices() noexcept { return 0; }

template <class Function>
Callback plain(Function* function) noexcept {
    return reinterpret_cast<Callback>(function);
}

}  // namespace

Callback find_tool_entry_point(const char* name) noexcept {
    const std::pair<std::string_view, Callback> all[] = {
        {"ompt_enumerate_states", plain(&enumerate_states)},
        {"ompt_enumerate_mutex_impls", plain(&enumerate_mutex_implementations)},
        {"ompt_set_callback", plain(&set_callback)},
        {"ompt_get_callback", plain(&get_callback)},
        {"ompt_get_thread_data", plain(&get_thread_data)},
        {"ompt_get_state", plain(&get_state)},
        {"ompt_get_parallel_info", plain(&get_parallel_info)},
        {"ompt_get_task_info", plain(&get_task_info)},
        {"ompt_get_task_memory", plain(&get_task_memory)},
        {"ompt_get_num_procs", plain(&get_num_procs)},
        {"ompt_get_num_places", plain(&get_num_places)},
        {"ompt_get_place_proc_ids", plain(&get_place_proc_ids)},
        {"ompt_get_place_num", plain(&get_place_num)},
        {"ompt_get_partition_place_nums", plain(&get_partition_place_nums)},
        {"ompt_get_proc_id", plain(&get_proc_id)},
        {"ompt_get_unique_id", plain(&get_unique_id)},
        {"ompt_finalize_tool", plain(&finalize_tool)},
        {"ompt_get_target_info", plain(&get_target_info)},
        {"ompt_get_num_devices", plain(&get_num_devices)},
    };
    for (const auto& [known_name, function] : all)
        if (known_name == name) return function;
    return nullptr;
}

}  // namespace hiroba::abi
