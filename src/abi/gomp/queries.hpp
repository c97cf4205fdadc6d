// SPDX-License-Identifier: BSD-3-Clause
// Role: the omp_* functions of C, declared for their Fortran twins.
// Invariant: signatures as in omp.h of gcc 12.
#pragma once

extern "C" {

int omp_get_thread_num();
int omp_get_num_threads();
int omp_get_level();
int omp_get_active_level();
int omp_in_parallel();
int omp_get_ancestor_thread_num(int level);
int omp_get_team_size(int level);
int omp_get_max_threads();
void omp_set_num_threads(int threads);
int omp_get_thread_limit();
int omp_get_num_procs();
int omp_get_dynamic();
void omp_set_dynamic(int on);
int omp_get_max_active_levels();
int omp_get_supported_active_levels();
void omp_set_max_active_levels(int levels);
int omp_get_nested();
void omp_set_nested(int on);
void omp_set_schedule(int kind, int chunk);
void omp_get_schedule(int* kind, int* chunk);
int omp_get_cancellation();
int omp_get_proc_bind();
int omp_get_max_task_priority();
int omp_in_final();
int omp_get_num_teams();
int omp_get_team_num();
int omp_get_max_teams();
void omp_set_num_teams(int teams);
int omp_get_teams_thread_limit();
void omp_set_teams_thread_limit(int limit);
int omp_get_num_devices();
int omp_get_initial_device();
int omp_get_device_num();
int omp_is_initial_device();
int omp_get_default_device();
void omp_set_default_device(int device);
int omp_pause_resource(int kind, int device);
int omp_pause_resource_all(int kind);
double omp_get_wtime();
double omp_get_wtick();
void omp_display_env(int verbose);

}  // extern "C"
