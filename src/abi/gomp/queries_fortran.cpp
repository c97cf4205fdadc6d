// SPDX-License-Identifier: BSD-3-Clause
// Role: the omp_* functions of Fortran: `_` takes default integers by reference, `_8_` 8-byte ones.
// Invariant: each is its C twin; 8-byte values beyond an int are clamped to it.
#include <algorithm>
#include <climits>
#include <cstdint>

#include "abi/gomp/queries.hpp"

#pragma GCC visibility push(default)

namespace {

int clamp(std::int64_t value) noexcept {
    return static_cast<int>(std::clamp<std::int64_t>(value, INT_MIN, INT_MAX));
}

}  // namespace

#define HIROBA_GET(name) \
    int name##_() { return name(); }
#define HIROBA_GET_AT(name)                                         \
    int name##_(const std::int32_t* level) { return name(*level); } \
    int name##_8_(const std::int64_t* level) { return name(clamp(*level)); }
#define HIROBA_SET(name)                                      \
    void name##_(const std::int32_t* value) { name(*value); } \
    void name##_8_(const std::int64_t* value) { name(clamp(*value)); }
#define HIROBA_SET_TRUTH(name)                                     \
    void name##_(const std::int32_t* value) { name(*value != 0); } \
    void name##_8_(const std::int64_t* value) { name(*value != 0); }

extern "C" {

HIROBA_GET(omp_get_thread_num)
HIROBA_GET(omp_get_num_threads)
HIROBA_GET(omp_get_level)
HIROBA_GET(omp_get_active_level)
HIROBA_GET(omp_in_parallel)
HIROBA_GET_AT(omp_get_ancestor_thread_num)
HIROBA_GET_AT(omp_get_team_size)
HIROBA_GET(omp_get_max_threads)
HIROBA_SET(omp_set_num_threads)
HIROBA_GET(omp_get_thread_limit)
HIROBA_GET(omp_get_num_procs)
HIROBA_GET(omp_get_dynamic)
HIROBA_SET_TRUTH(omp_set_dynamic)
HIROBA_GET(omp_get_max_active_levels)
HIROBA_GET(omp_get_supported_active_levels)
HIROBA_SET(omp_set_max_active_levels)
HIROBA_GET(omp_get_nested)
HIROBA_SET_TRUTH(omp_set_nested)
HIROBA_GET(omp_get_cancellation)
HIROBA_GET(omp_get_proc_bind)
HIROBA_GET(omp_get_max_task_priority)
HIROBA_GET(omp_in_final)
HIROBA_GET(omp_get_num_teams)
HIROBA_GET(omp_get_team_num)
HIROBA_GET(omp_get_max_teams)
HIROBA_SET(omp_set_num_teams)
HIROBA_GET(omp_get_teams_thread_limit)
HIROBA_SET(omp_set_teams_thread_limit)
HIROBA_GET(omp_get_num_devices)
HIROBA_GET(omp_get_initial_device)
HIROBA_GET(omp_get_device_num)
HIROBA_GET(omp_is_initial_device)
HIROBA_GET(omp_get_default_device)
HIROBA_SET(omp_set_default_device)

void omp_set_schedule_(const std::int32_t* kind, const std::int32_t* chunk) {
    omp_set_schedule(*kind, *chunk);
}
void omp_set_schedule_8_(const std::int32_t* kind, const std::int64_t* chunk) {
    omp_set_schedule(*kind, clamp(*chunk));
}
void omp_get_schedule_(std::int32_t* kind, std::int32_t* chunk) { omp_get_schedule(kind, chunk); }
void omp_get_schedule_8_(std::int32_t* kind, std::int64_t* chunk) {
    int small = 0;
    omp_get_schedule(kind, &small);
    *chunk = small;
}

int omp_pause_resource_(const std::int32_t* kind, const std::int32_t* device) {
    return omp_pause_resource(*kind, *device);
}
int omp_pause_resource_all_(const std::int32_t* kind) { return omp_pause_resource_all(*kind); }

double omp_get_wtime_() { return omp_get_wtime(); }
double omp_get_wtick_() { return omp_get_wtick(); }

HIROBA_SET_TRUTH(omp_display_env)

}  // extern "C"
