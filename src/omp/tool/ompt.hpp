// SPDX-License-Identifier: BSD-3-Clause
// Role: the interface between an OpenMP runtime and a first-party tool, as the standard has it.
// Invariant: names are the standard's without their prefix; numbers and layouts are its own, so
// that a tool compiled with any vendor's omp-tools.h fits.
// Source: OpenMP 5.2, chapter 19.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::omp::ompt {

/// A value that a tool keeps with a thread, a region or a task.
union Data {
    std::uint64_t value;
    void* pointer;
};

enum class Event : int {
    thread_begin = 1,
    thread_end = 2,
    parallel_begin = 3,
    parallel_end = 4,
    task_create = 5,
    task_schedule = 6,
    implicit_task = 7,
    target = 8,
    control_tool = 11,
    sync_region_wait = 16,
    mutex_released = 17,
    dependences = 18,
    task_dependence = 19,
    work = 20,
    masked = 21,
    sync_region = 23,
    lock_init = 24,
    lock_destroy = 25,
    mutex_acquire = 26,
    mutex_acquired = 27,
    nest_lock = 28,
    flush = 29,
    cancel = 30,
    reduction = 31,
    dispatch = 32,
    target_emi = 33,
    error = 37,
};
inline constexpr int events = 38;

/// Whether this runtime tells of the event with that number: all but the mapping of data, which
/// changes nothing.
constexpr bool is_told(int event) noexcept {
    return (event >= 1 && event <= 8) || event == 11 || (event >= 16 && event <= 21) ||
           (event >= 23 && event <= 33) || event == 37;
}
/// Events of devices, of which there is none: they never happen, and a tool may listen, as the
/// standard has it (table 19.3).
constexpr bool is_of_devices(int event) noexcept {
    return event == 9 || event == 10 || (event >= 12 && event <= 15) || event == 34 || event == 35;
}

enum class Thread : int { initial = 1, worker = 2, other = 3 };
enum class Scope : int { begin = 1, end = 2, begin_and_end = 3 };
enum class Sync : int {
    barrier_explicit = 3,
    barrier_implementation = 4,
    taskwait = 5,
    taskgroup = 6,
    reduction = 7,
    barrier_implicit_workshare = 8,
    barrier_implicit_parallel = 9,
};
enum class Work : int {
    loop = 1,
    sections = 2,
    single_executor = 3,
    single_other = 4,
    distribute = 6,
    taskloop = 7,
    scope = 8,
};
/// A construct; with `nowait` 8 more.
enum class Target : int { region = 1, enter_data = 2, exit_data = 3, update = 4 };
inline constexpr int target_nowait = 8;
enum class Dispatch : int { iteration = 1, section = 2 };
enum class Mutex : int {
    lock = 1,
    test_lock = 2,
    nest_lock = 3,
    test_nest_lock = 4,
    critical = 5,
    atomic = 6,
    ordered = 7,
};
enum class TaskStatus : int {
    complete = 1,
    yield = 2,
    cancel = 3,
    detach = 4,
    early_fulfill = 5,
    late_fulfill = 6,
    switched = 7,
    taskwait_complete = 8,
};
enum class Severity : int { warning = 1, fatal = 2 };

namespace task_flag {
inline constexpr int initial = 1, implicit = 2, explicit_ = 4, target = 8, taskwait = 16,
                     undeferred = 0x08000000, untied = 0x10000000, final = 0x20000000,
                     mergeable = 0x40000000;
}
namespace parallel_flag {
inline constexpr std::uint32_t invoker_program = 1, league = 0x40000000, team = 0x80000000;
}
namespace cancel_flag {
inline constexpr int parallel = 1, sections = 2, loop = 4, taskgroup = 8, activated = 16,
                     detected = 32;
}

enum class State : int {
    work_serial = 0x000,
    work_parallel = 0x001,
    work_reduction = 0x002,
    wait_barrier_implicit_parallel = 0x011,
    wait_barrier_implicit_workshare = 0x012,
    wait_barrier_explicit = 0x014,
    wait_barrier_implementation = 0x015,
    wait_taskwait = 0x020,
    wait_taskgroup = 0x021,
    wait_mutex = 0x040,
    wait_lock = 0x041,
    wait_critical = 0x042,
    wait_atomic = 0x043,
    wait_ordered = 0x044,
    idle = 0x100,
    overhead = 0x101,
    undefined = 0x102,
};

/// An address in a stack frame, and what kind of frame and address.
struct Frame {
    Data exit_frame{0}, enter_frame{0};
    int exit_flags = 0, enter_flags = 0;
};
namespace frame_flag {
inline constexpr int runtime = 0x00, stack_address = 0x30;
}

struct Dependence {
    Data variable;
    int kind;
};
namespace dependence_kind {
inline constexpr int in = 1, out = 2, inout = 3, mutexinoutset = 4, source = 5, sink = 6,
                     inoutset = 7, inout_all_memory = 35;
}

/// The answers of ompt_set_callback().
enum class Set : int { error = 0, never = 1, impossible = 2, sometimes = 3, always = 5 };

using Callback = void (*)();
using Lookup = Callback (*)(const char*);
using Initialize = int (*)(Lookup, int initial_device, Data* tool_data);
using Finalize = void (*)(Data* tool_data);
/// The answer of a tool's ompt_start_tool(); null: the tool does not want to be called.
struct StartResult {
    Initialize initialize;
    Finalize finalize;
    Data tool_data;
};
using StartTool = StartResult* (*)(unsigned omp_version, const char* runtime_version);

}  // namespace hiroba::omp::ompt
