// SPDX-License-Identifier: BSD-3-Clause
// Role: names that LLVM's runtime has for calls of C beside those of Fortran, and what else of
// omp_* it has that gcc's has not. Invariant: each is the call it is named after.
#include <cstddef>

#include "abi/kmp/kmp.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;

extern "C" {

void omp_set_num_threads(int threads);
void omp_set_dynamic(int on);
void omp_set_nested(int on);
void omp_set_max_active_levels(int levels);
void omp_set_schedule(int kind, int chunk);
int omp_get_ancestor_thread_num(int level);
int omp_get_team_size(int level);
void omp_set_affinity_format(const char* format);
std::size_t omp_get_affinity_format(char* buffer, std::size_t bytes);
void omp_display_affinity(const char* format);
std::size_t omp_capture_affinity(char* buffer, std::size_t bytes, const char* format);

void ompc_set_num_threads(int threads) { omp_set_num_threads(threads); }
void ompc_set_dynamic(int on) { omp_set_dynamic(on); }
void ompc_set_nested(int on) { omp_set_nested(on); }
void ompc_set_max_active_levels(int levels) { omp_set_max_active_levels(levels); }
void ompc_set_schedule(int kind, int chunk) { omp_set_schedule(kind, chunk); }
int ompc_get_ancestor_thread_num(int level) { return omp_get_ancestor_thread_num(level); }
int ompc_get_team_size(int level) { return omp_get_team_size(level); }
void ompc_set_affinity_format(const char* format) { omp_set_affinity_format(format); }
std::size_t ompc_get_affinity_format(char* buffer, std::size_t bytes) {
    return omp_get_affinity_format(buffer, bytes);
}
void ompc_display_affinity(const char* format) { omp_display_affinity(format); }
std::size_t ompc_capture_affinity(char* buffer, std::size_t bytes, const char* format) {
    return omp_capture_affinity(buffer, bytes, format);
}

int omp_control_tool(int command, int modifier, void* argument) {
    note_caller();
    return runtime().control_tool(command, modifier, argument);
}
int omp_control_tool_(const int* command, const int* modifier, void* argument) {
    note_caller();
    return runtime().control_tool(*command, *modifier, argument);
}

}  // extern "C"
