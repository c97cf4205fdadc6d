// SPDX-License-Identifier: BSD-3-Clause
// Calls of LLVM's runtime that gcc's has not, and those of both, from a program that clang built.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

static void memory(int threads) {
    int* const list = kmp_calloc((size_t)threads, sizeof *list);
    char* const text = kmp_malloc(100);
    strcpy(text, "kept");
    int right = 1;
#pragma omp parallel
    list[omp_get_thread_num()] = omp_get_thread_num() + 1;
    for (int t = 0; t < threads; t++) right &= list[t] == t + 1;
    char* const longer = kmp_realloc(text, 100000);
    check("kmp_malloc and its kin", right && strcmp(longer, "kept") == 0);
    kmp_free(longer);
    kmp_free(list);

    omp_alloctrait_t traits[] = {{omp_atk_alignment, 256}};
    const omp_allocator_handle_t own = omp_init_allocator(omp_default_mem_space, 1, traits);
    double* const aligned = omp_alloc(1000, own);
#pragma omp parallel
#pragma omp single
    aligned[3] = 2.5;
    check("omp_alloc", ((size_t)aligned & 255) == 0 && aligned[3] == 2.5);
    omp_free(aligned, own);
    omp_destroy_allocator(own);
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        long part[50];
#pragma omp allocate(part) allocator(omp_default_mem_alloc)
        for (int i = 0; i < 50; i++) part[i] = i;
        for (int i = 0; i < 50; i++) sum += part[i];
    }
    check("an allocate directive", sum == 1225L * threads);
}

static void settings(void) {
    kmp_set_blocktime(25);
    check("kmp_set_blocktime", kmp_get_blocktime() == 25);
    kmp_set_library_throughput();
    check("kmp_get_library", kmp_get_library() == 3);
    kmp_set_warnings_off();
    kmp_set_defaults("OMP_DYNAMIC=false");
    check("kmp_get_stacksize", kmp_get_stacksize_s() > 0);
    kmp_affinity_mask_t mask;
    kmp_create_affinity_mask(&mask);
    check("a mask is empty", kmp_get_affinity_mask_proc(0, &mask) == 0);
    check("the calling thread's", kmp_get_affinity(&mask) == 0);
    int any = 0;
    for (int p = 0; p < kmp_get_affinity_max_proc(); p++)
        any |= kmp_get_affinity_mask_proc(p, &mask);
    check("has a processor", any);
    kmp_destroy_affinity_mask(&mask);
}

static void questions(int threads) {
    omp_sched_t kind;
    int chunk = 0, right = 0;
    omp_set_schedule(omp_sched_guided, 5);
    omp_get_schedule(&kind, &chunk);
    check("omp_get_schedule", (kind & 0xf) == omp_sched_guided && chunk == 5);
#pragma omp parallel reduction(+ : right)
    right += omp_in_parallel() && omp_get_level() == 1 && omp_get_active_level() == (threads > 1) &&
             omp_get_team_size(1) == threads && omp_get_ancestor_thread_num(0) == 0 &&
             omp_get_thread_num() < threads;
    check("where a thread is", right == threads);
    check("devices",
          omp_get_num_devices() == 0 && omp_is_initial_device() && omp_get_initial_device() == 0);
    check("cancellation", omp_get_cancellation() == 0);
    const double now = omp_get_wtime();
    check("time", now >= 0 && omp_get_wtick() > 0 && omp_get_wtime() >= now);
    check("outside", !omp_in_parallel() && omp_get_num_threads() == 1 && !omp_in_final());
}

int main(void) {
    const int threads = team_size();
    memory(threads);
    settings();
    questions(threads);
    return wrong;
}
