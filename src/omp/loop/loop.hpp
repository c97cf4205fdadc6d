// SPDX-License-Identifier: BSD-3-Clause
// Role: a loop as the compilers' entry points describe it.
// Invariant: plain data with one layout in every process of a job: it travels in fork messages.
#pragma once

#include <cstdint>

namespace hiroba::omp {

/// The numbers are those of omp_sched_t; `runtime` stands for the calling task's run-sched-var.
enum class Schedule : std::uint32_t {
    runtime = 0,
    static_chunks = 1,
    dynamic = 2,
    guided = 3,
    automatic = 4
};

/// Iterations start, start + step, ... before end, or up to and with it.
struct Loop {
    bool up = true;                              ///< signed loops: step > 0
    std::uint64_t start = 0, end = 0, step = 1;  ///< two's complement; step < 0 when !up
    bool is_unsigned = false;
    bool closed = false;  ///< an iteration may be at `end` itself
    Schedule schedule = Schedule::static_chunks;
    std::uint64_t chunk = 0;  ///< 0: the schedule's default
    bool ordered = false;
    bool sections = false;  ///< for a tool: sections, numbered from 1
};

}  // namespace hiroba::omp
