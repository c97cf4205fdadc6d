// SPDX-License-Identifier: BSD-3-Clause
// Role: OpenMP's internal control variables: what OMP_* variables set and omp_set_* change.
// Invariant: `Icvs` belong to a task and travel in fork messages, so they are plain data; what is
// fixed for the whole program is in `Environment`, read once by every process.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "omp/affinity/places.hpp"
#include "omp/loop/loop.hpp"

namespace hiroba::omp {

inline constexpr std::uint32_t levels_supported = 255;  ///< of active regions, as with gcc
inline constexpr std::uint32_t thread_limit_none = UINT32_MAX;

/// The data environment of one task.
struct Icvs {
    std::uint32_t threads = 1;  ///< nthreads-var
    Schedule schedule = Schedule::dynamic;
    bool monotonic = false;
    std::uint64_t chunk = 1;
    bool dynamic = false;
    std::uint32_t max_active_levels = 1;
    std::int32_t default_device = 0;
    std::int32_t teams = 0;
    std::int32_t teams_thread_limit = 0;
    std::uint32_t thread_limit = 0;  ///< of the construct around it; 0: none
    ProcBind bind = ProcBind::none;
    std::uint32_t league_size = 1, team_number = 0;
    std::uintptr_t default_allocator = 1;  ///< omp_default_mem_alloc
};

/// Predefined allocators, by their handles from 1 on.
inline constexpr const char* allocator_names[] = {
    "omp_default_mem_alloc", "omp_large_cap_mem_alloc", "omp_const_mem_alloc",
    "omp_high_bw_mem_alloc", "omp_low_lat_mem_alloc",   "omp_cgroup_mem_alloc",
    "omp_pteam_mem_alloc",   "omp_thread_mem_alloc"};

enum class WaitPolicy : std::uint8_t { unset, active, passive };

/// The settings of the environment for the whole program.
struct Environment {
    Icvs initial;
    std::array<std::uint32_t, 32> threads_by_level{};  ///< OMP_NUM_THREADS' list
    std::uint32_t levels = 0;                          ///< entries used; 0: variable not set
    bool levels_are_set = false;                       ///< by OMP_NESTED or OMP_MAX_ACTIVE_LEVELS
    std::vector<Processors> places;          ///< of this node; none: threads are not bound
    std::vector<ProcBind> bind_by_level;     ///< OMP_PROC_BIND's list
    std::string places_text, affinity_text;  ///< OMP_PLACES and GOMP_CPU_AFFINITY as they were set
    std::uint32_t thread_limit = thread_limit_none;
    std::uint64_t stack_bytes = 0;  ///< 0: the system's default
    WaitPolicy wait_policy = WaitPolicy::unset;
    bool cancellation = false;
    std::int32_t task_priority_max = 0;
    bool display_affinity = false;
    std::string affinity_format;  ///< empty: the default of the program's runtime
    enum class Display : std::uint8_t { off, on, verbose } display = Display::off;
};

/// Reads every OMP_* variable. A bad value is named in one line on stderr and its default taken,
/// as gcc's runtime does; silent unless `complain`.
Environment read_environment(bool complain);

/// OMP_STACKSIZE, else GOMP_STACKSIZE, else KMP_STACKSIZE, in bytes; 0: neither is set to a size.
/// Allocates nothing.
std::uint64_t stack_bytes_from_environment() noexcept;

/// The text of OMP_DISPLAY_ENV, in gcc's format. `icvs`: of the initial task.
std::string display_text(const Environment& environment, const Icvs& icvs, bool verbose);

}  // namespace hiroba::omp
