// SPDX-License-Identifier: BSD-3-Clause
// Role: entry points of constructs that are not built: each ends the program with one line.
// Invariant: nothing here ever returns a wrong answer; compilers' start-up registration of device
// code is accepted, since a program that never offloads runs well without it.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/gomp/runtime.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

using hiroba::abi::refuse;

namespace {

int shown_length(const char* message, std::size_t length) {
    if (message == nullptr) return 0;
    return static_cast<int>(length == SIZE_MAX ? std::strlen(message) : length);
}

}  // namespace

/// The names lie in a section of their own, where the launcher finds what this build refuses.
#define HIROBA_REFUSED(name, construct)                                                           \
    [[gnu::section("hiroba_refused"), gnu::used]] static constexpr char refused_##name[] = #name; \
    void name() { refuse(#name, construct); }

extern "C" {

HIROBA_REFUSED(GOMP_task, "tasks are")
HIROBA_REFUSED(GOMP_taskloop, "taskloops are")
HIROBA_REFUSED(GOMP_taskloop_ull, "taskloops are")
HIROBA_REFUSED(GOMP_taskgroup_reduction_register, "task reductions are")
HIROBA_REFUSED(GOMP_taskgroup_reduction_unregister, "task reductions are")
HIROBA_REFUSED(GOMP_task_reduction_remap, "task reductions are")
HIROBA_REFUSED(GOMP_workshare_task_reduction_unregister, "task reductions are")
HIROBA_REFUSED(GOMP_parallel_reductions, "task reductions on parallel regions are")
HIROBA_REFUSED(GOMP_scope_start, "task reductions on scopes are")
HIROBA_REFUSED(omp_fulfill_event, "detached tasks are")
HIROBA_REFUSED(omp_fulfill_event_, "detached tasks are")

HIROBA_REFUSED(GOMP_doacross_post, "doacross loops are")
HIROBA_REFUSED(GOMP_doacross_wait, "doacross loops are")
HIROBA_REFUSED(GOMP_doacross_ull_post, "doacross loops are")
HIROBA_REFUSED(GOMP_doacross_ull_wait, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_doacross_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_doacross_static_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_doacross_dynamic_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_doacross_guided_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_doacross_runtime_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_ull_doacross_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_ull_doacross_static_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_ull_doacross_dynamic_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_ull_doacross_guided_start, "doacross loops are")
HIROBA_REFUSED(GOMP_loop_ull_doacross_runtime_start, "doacross loops are")

// Made by gcc before 4.9 only.
HIROBA_REFUSED(GOMP_parallel_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_end, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_loop_static_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_loop_dynamic_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_loop_guided_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_loop_runtime_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_sections_start, "code of gcc before 4.9 is")

HIROBA_REFUSED(GOMP_teams, "teams regions are")
HIROBA_REFUSED(GOMP_teams4, "teams regions are")
HIROBA_REFUSED(GOMP_teams_reg, "teams regions are")
HIROBA_REFUSED(GOMP_target, "target regions are")
HIROBA_REFUSED(GOMP_target_ext, "target regions are")
HIROBA_REFUSED(GOMP_target_data, "target regions are")
HIROBA_REFUSED(GOMP_target_data_ext, "target regions are")
HIROBA_REFUSED(GOMP_target_end_data, "target regions are")
HIROBA_REFUSED(GOMP_target_update, "target regions are")
HIROBA_REFUSED(GOMP_target_update_ext, "target regions are")
HIROBA_REFUSED(GOMP_target_enter_exit_data, "target regions are")

void GOMP_offload_register(const void*, int, const void*) {}
void GOMP_offload_unregister(const void*, int, const void*) {}
void GOMP_offload_register_ver(unsigned, const void*, int, const void*) {}
void GOMP_offload_unregister_ver(unsigned, const void*, int, const void*) {}

// `#pragma omp error at(execution)`; a length of SIZE_MAX means a terminated string.
void GOMP_warning(const char* message, std::size_t length) {
    hiroba::say("warning: %.*s", shown_length(message, length), message);
}
void GOMP_error(const char* message, std::size_t length) {
    hiroba::die(1, "error: %.*s", shown_length(message, length), message);
}

}  // extern "C"
