// SPDX-License-Identifier: BSD-3-Clause
// Constructs, clauses and API routines of OpenMP 5.2 that the other programs here leave out, a line
// each; openmp_rows.cpp and openmp_rows.f90 are the same for C++ and Fortran. Right with any
// number of threads; exits with the number of wrong lines. A word as argument has omp_display_env()
// print.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

enum { count = 960, side = 24 };

static long values[count];
static long prefix[count];

static void clear(void) { memset(values, 0, sizeof values); }
static int all_are(long wanted) {
    int all = 1;
    for (int i = 0; i < count; ++i) all &= values[i] == wanted;
    clear();
    return all;
}

// --- declarative directives ----------------------------------------------------------------------

struct Pair {
    long sum, products;
};
static struct Pair add_pairs(struct Pair a, struct Pair b) {
    a.sum += b.sum;
    a.products += b.products;
    return a;
}
#pragma omp declare reduction(pairs                                   \
                              : struct Pair                           \
                              : omp_out = add_pairs(omp_out, omp_in)) \
    initializer(omp_priv = {0, 0})

#pragma omp declare simd uniform(factor) linear(i : 1) notinbranch
static long scaled(long i, long factor) { return i * factor; }

static long plain_version(void) { return 1; }
static long parallel_version(void) { return 2; }
#pragma omp declare variant(parallel_version) match(construct = {parallel})
static long variant(void) { return plain_version(); }

static void declared(void) {
    struct Pair pair = {0, 0};
#pragma omp parallel for reduction(pairs : pair)
    for (int i = 0; i < count; ++i) {
        pair.sum += i;
        pair.products += (long)i * i;
    }
    check("declare reduction", pair.sum == 460320 && pair.products == 294451360);
#pragma omp parallel for simd schedule(simd : static)
    for (int i = 0; i < count; ++i) values[i] = scaled(i, 3) - 3 * i + 1;
    check("declare simd, for simd", all_are(1));
    long seen = 0;
#pragma omp parallel reduction(max : seen)
    seen = variant();
    check("declare variant", seen == 2 && variant() == 1);
}

// --- parallel, teams, loops ----------------------------------------------------------------------

static void reductions(void) {
    long sum = 5, product = 1, least = 99999, most = -1, minus = 0;
    unsigned ands = ~0u, ors = 0, exclusive = 0;
    int every = 1, some = 0;
    long parts[3] = {1, 2, 3};
#pragma omp parallel for reduction(+ : sum) reduction(* : product) reduction(min : least)     \
    reduction(max : most) reduction(& : ands) reduction(| : ors) reduction(^ : exclusive)     \
    reduction(&& : every) reduction(|| : some) reduction(- : minus) reduction(+ : parts[0 : 3])
    for (int i = 1; i <= count; ++i) {
        sum += i;
        if (i % 480 == 0) product *= i;
        if (i < least) least = i;
        if (i > most) most = i;
        ands &= ~(1u << (i % 5));
        ors |= 1u << (i % 7);
        exclusive ^= (unsigned)i;
        every = every && i > 0;
        some = some || i == 77;
        minus -= i;
        parts[i % 3] += i;
    }
    check("reductions", sum == 461285 && product == 480 * 960 && least == 1 && most == count &&
                            ands == ~31u && ors == 127 && exclusive == count && every && some &&
                            minus == -461280);
    check("reduction of an array section",
          parts[0] == 154081 && parts[1] == 153442 && parts[2] == 153763);
}

static void loops(void) {
    int j = 0;
#pragma omp parallel for linear(j : 2)
    for (int i = 0; i < count; ++i) {
        values[i] = j - 2 * i + 1;
        j += 2;
    }
    check("linear", j == 2 * count && all_are(1));
#pragma omp parallel for collapse(2) order(concurrent)
    for (int a = 0; a < side; ++a)
        for (int b = 0; b < count / side; ++b) values[a * (count / side) + b] += 1;
    check("collapse, order(concurrent)", all_are(1));
#pragma omp parallel for collapse(2)
    for (int a = 0; a < side; ++a)
        for (int b = a; b < side; ++b) values[a * side + b] += 1;
    long triangle = 0;
    for (int i = 0; i < count; ++i) triangle += values[i];
    check("collapse of a triangle", triangle == side * (side + 1) / 2);
    clear();
}

// By clang 14 with its own runtime, both lastprivate rows and both scans are wrong now and then,
// and every thread executes what `loop` binds to parallel.
#ifndef __clang__
static void newer_loops(void) {
    long last = -1, conditional = -1;
#pragma omp parallel for lastprivate(last) schedule(nonmonotonic : dynamic, 3)
    for (int i = 0; i < count; ++i) last = i;
    check("lastprivate, nonmonotonic", last == count - 1);
#pragma omp parallel for lastprivate(conditional : conditional) schedule(dynamic, 3)
    for (int i = 0; i < count; ++i)
        if (i % 100 == 17) conditional = i;
    check("lastprivate(conditional)", conditional == 917);
    long sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
    for (int i = 0; i < count; ++i) {
        sum += i;
#pragma omp scan inclusive(sum)
        prefix[i] = sum;
    }
    int right = sum == 460320;
    for (int i = 0; i < count; ++i) right &= prefix[i] == (long)i * (i + 1) / 2;
    check("scan inclusive", right);
    sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
    for (int i = 0; i < count; ++i) {
        prefix[i] = sum;
#pragma omp scan exclusive(sum)
        sum += i;
    }
    right = sum == 460320;
    for (int i = 0; i < count; ++i) right &= prefix[i] == (long)i * (i - 1) / 2;
    check("scan exclusive", right);
#pragma omp parallel
#pragma omp loop bind(parallel)
    for (int i = 0; i < count; ++i) values[i] += 1;
    check("loop bind(parallel)", all_are(1));
}
#endif

static void loops_of_other_kinds(void) {
#pragma omp loop bind(thread)
    for (int i = 0; i < count; ++i) values[i] += 1;
    check("loop bind(thread)", all_are(1));
#pragma omp simd safelen(8) simdlen(4) aligned(values : 8) nontemporal(values) if (simd : count > 9)
    for (int i = 0; i < count; ++i) values[i] += 1;
    check("simd", all_are(1));
    long parts = 0, nothing = 0;
#pragma omp parallel num_threads(3) if (parallel : wrong >= 0) proc_bind(close) default(none) \
    firstprivate(nothing) shared(wrong) reduction(+ : parts)
    parts += 1 + nothing;
    check("parallel if num_threads proc_bind default", parts >= 1 && parts <= 3);
}

static void leagues(void) {
    long sum = 0;
#pragma omp teams num_teams(2) thread_limit(4) reduction(+ : sum)
#pragma omp distribute dist_schedule(static, 7)
    for (int i = 0; i < count; ++i) sum += i;
    check("teams distribute", sum == 460320);
#pragma omp teams distribute parallel for
    for (int i = 0; i < count; ++i) values[i] += 1;
    check("teams distribute parallel for", all_are(1));
#pragma omp teams distribute parallel for simd
    for (int i = 0; i < count; ++i) values[i] += 1;
    check("teams distribute parallel for simd", all_are(1));
#pragma omp teams distribute simd
    for (int i = 0; i < count; ++i) values[i] += 1;
    check("teams distribute simd", all_are(1));
#pragma omp target teams distribute parallel for map(tofrom : values)
    for (int i = 0; i < count; ++i) values[i] += 1;
    check("target teams distribute parallel for", all_are(1));
}

// --- tasks and synchronization -------------------------------------------------------------------

static void tasks(void) {
    long sum = 0;
#pragma omp parallel master taskloop reduction(+ : sum) grainsize(40)
    for (int i = 0; i < count; ++i) sum += i;
    check("parallel master taskloop", sum == 460320);
#pragma omp parallel master taskloop simd num_tasks(12)
    for (int i = 0; i < count; ++i) values[i] += 1;
    check("parallel master taskloop simd", all_are(1));
#pragma omp parallel
#pragma omp master taskloop nogroup collapse(2) untied priority(1)
    for (int a = 0; a < side; ++a)
        for (int b = 0; b < count / side; ++b) values[a * (count / side) + b] += 1;
    check("master taskloop nogroup collapse", all_are(1));
    sum = 0;
#pragma omp parallel reduction(task, + : sum)
#pragma omp single
    for (int i = 0; i < count; i += 96)
#pragma omp task in_reduction(+ : sum) firstprivate(i)
        for (int k = i; k < i + 96; ++k) sum += k;
    check("reduction(task), in_reduction", sum == 460320);
    long chain = 0;
#pragma omp parallel
#pragma omp single
    for (long i = 0; i < 30; ++i) {
#pragma omp task depend(inout : chain) firstprivate(i) mergeable
        chain = chain * 3 % 1000003 + i;
    }
    long wanted = 0;
    for (long i = 0; i < 30; ++i) wanted = wanted * 3 % 1000003 + i;
    check("task depend(inout)", chain == wanted);
}

static void synchronization(void) {
    long added = 0, captured = 0, written = 0, read_back = 0;
#pragma omp parallel for reduction(+ : captured)
    for (int i = 0; i < count; ++i) {
        long before;
#pragma omp atomic capture seq_cst hint(omp_sync_hint_contended)
        {
            before = added;
            added += 1;
        }
        captured += before;
#pragma omp critical(named) hint(omp_sync_hint_contended)
        values[0] += 1;
    }
    check("atomic capture, critical hint",
          added == count && captured == 460320 && values[0] == count);
    clear();
#pragma omp parallel num_threads(2)
    {
#pragma omp atomic write release
        written = 7;
#pragma omp flush acq_rel
#pragma omp barrier
#pragma omp atomic read acquire
        read_back = written;
    }
    check("atomic write, atomic read, flush acq_rel", read_back == 7);
    long most = -1;
#ifndef __clang__
#pragma omp parallel for
    for (int i = 0; i < count; ++i) {
#pragma omp atomic compare
        most = most < i ? i : most;
    }
    check("atomic compare", most == count - 1);
    long entered = 0;
#pragma omp parallel
    {
#pragma omp masked filter(omp_get_num_threads() - 1)
        values[0] = omp_get_thread_num() + 1 - omp_get_num_threads();
#pragma omp scope reduction(+ : entered)
        entered += 1;
#pragma omp single
        most = omp_get_num_threads();
    }
    check("masked filter, scope", values[0] == 0 && entered == most);
#pragma omp nothing
#endif
    (void)most;
}

// --- API routines --------------------------------------------------------------------------------

static void routines(void) {
    const int threads = omp_get_max_threads();
    check("omp_get_num_procs", omp_get_num_procs() >= 1);
    check("omp_get_thread_limit", omp_get_thread_limit() >= threads);
    check("omp_in_parallel, omp_get_level, omp_get_active_level",
          !omp_in_parallel() && omp_get_level() == 0 && omp_get_active_level() == 0);
    int inside = 0;
#pragma omp parallel num_threads(2) reduction(+ : inside)
    inside += omp_get_level() == 1 && omp_get_ancestor_thread_num(1) == omp_get_thread_num() &&
              omp_get_team_size(1) == omp_get_num_threads() &&
              omp_get_ancestor_thread_num(2) == -1 && omp_get_team_size(-1) == -1;
    check("omp_get_ancestor_thread_num, omp_get_team_size", inside >= 1);
    omp_set_num_threads(threads + 1);
    check("omp_set_num_threads", omp_get_max_threads() == threads + 1);
    omp_set_num_threads(threads);
    omp_set_dynamic(1);
    const int dynamic = omp_get_dynamic();
    omp_set_dynamic(0);
    check("omp_set_dynamic", dynamic == 1 && omp_get_dynamic() == 0);
    omp_set_max_active_levels(3);
    check("omp_set_max_active_levels",
          omp_get_max_active_levels() == 3 && omp_get_supported_active_levels() >= 3);
    omp_set_max_active_levels(1);
    omp_set_schedule(omp_sched_guided, 5);
    omp_sched_t kind;
    int chunk;
    omp_get_schedule(&kind, &chunk);
    check("omp_set_schedule", kind == omp_sched_guided && chunk == 5);
    check("omp_get_cancellation", omp_get_cancellation() == 0);
    check("omp_get_max_task_priority", omp_get_max_task_priority() == 0);
    check("omp_in_final", !omp_in_final());
    const double before = omp_get_wtime();
    check("omp_get_wtime, omp_get_wtick", omp_get_wtime() >= before && omp_get_wtick() > 0);
    omp_set_num_teams(3);
    omp_set_teams_thread_limit(2);
    check("omp_set_num_teams, omp_set_teams_thread_limit",
          omp_get_max_teams() == 3 && omp_get_teams_thread_limit() == 2);
    check("omp_get_num_teams, omp_get_team_num",
          omp_get_num_teams() == 1 && omp_get_team_num() == 0);
    char format[64];
    omp_set_affinity_format("thread %n of %N");
    check("omp_set_affinity_format", omp_get_affinity_format(format, sizeof format) == 15 &&
                                         !strcmp(format, "thread %n of %N"));
    check("omp_capture_affinity", omp_capture_affinity(format, sizeof format, NULL) == 13 &&
                                      !strcmp(format, "thread 0 of 1"));
}

static void locks(void) {
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    long locked = 0, deepest = 0;
#pragma omp parallel for
    for (int i = 0; i < 60; ++i) {
        omp_set_lock(&lock);
        ++locked;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        const int depth = omp_test_nest_lock(&nest);
        if (depth > deepest) deepest = depth;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
    }
    const int taken = omp_test_lock(&lock);
    check("locks", locked == 60 && taken == 1 && deepest == 2);
    omp_unset_lock(&lock);
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
}

static void memory(void) {
    omp_alloctrait_t trait = {omp_atk_alignment, 256};
    const omp_allocator_handle_t aligned = omp_init_allocator(omp_default_mem_space, 1, &trait);
    long* const words = (long*)omp_alloc(count * sizeof *words, aligned);
    int right = (uintptr_t)words % 256 == 0;
#pragma omp parallel for
    for (int i = 0; i < count; ++i) words[i] = i;
    for (int i = 0; i < count; ++i) right &= words[i] == i;
    check("omp_init_allocator, omp_alloc", right);
    long* const longer =
        (long*)omp_realloc(words, 2 * count * sizeof *words, omp_default_mem_alloc, aligned);
    check("omp_realloc", longer != NULL && longer[count - 1] == count - 1);
    omp_free(longer, omp_default_mem_alloc);
    char* const zeros = (char*)omp_aligned_calloc(128, 10, 20, omp_default_mem_alloc);
    char* const others = (char*)omp_aligned_alloc(64, 128, omp_default_mem_alloc);
    int* const more = (int*)omp_calloc(9, sizeof(int), omp_default_mem_alloc);
    right = (uintptr_t)zeros % 128 == 0 && (uintptr_t)others % 64 == 0 && more[8] == 0;
    for (int i = 0; i < 200; ++i) right &= zeros[i] == 0;
    check("omp_aligned_alloc, omp_aligned_calloc, omp_calloc", right);
    omp_free(zeros, omp_default_mem_alloc);
    omp_free(others, omp_default_mem_alloc);
    omp_free(more, omp_default_mem_alloc);
    omp_set_default_allocator(aligned);
    check("omp_set_default_allocator", omp_get_default_allocator() == aligned);
    omp_set_default_allocator(omp_default_mem_alloc);
    omp_destroy_allocator(aligned);
}

static void devices(void) {
    check("omp_get_num_devices, omp_is_initial_device",
          omp_get_num_devices() == 0 && omp_is_initial_device());
    omp_set_default_device(0);
    check("omp_set_default_device", omp_get_default_device() == 0);
#ifndef __clang__
    // LLVM's runtime has these in the library for devices only.
    const int host = omp_get_initial_device();
    check("omp_get_device_num", omp_get_device_num() == host);
    long* const there = (long*)omp_target_alloc(8 * sizeof *there, host);
    const long here[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    long square[4] = {0};
    int right = omp_target_memcpy(there, here, sizeof here, 0, 0, host, host) == 0 && there[7] == 8;
    const size_t volume[2] = {2, 2}, from[2] = {0, 1}, to[2] = {0, 0}, rows[2] = {2, 2},
                 rows_there[2] = {2, 4};
    right &= omp_target_memcpy_rect(square, there, sizeof(long), 2, volume, to, from, rows,
                                    rows_there, host, host) == 0;
    check("omp_target_alloc, omp_target_memcpy, omp_target_memcpy_rect",
          right && square[0] == 2 && square[1] == 3 && square[2] == 6 && square[3] == 7);
    check("omp_target_is_present", omp_target_is_present(there, host));
    check("omp_target_associate_ptr", omp_target_associate_ptr(here, there, 8, 0, host) != 0 &&
                                          omp_target_disassociate_ptr(here, host) != 0);
    omp_target_free(there, host);
#endif
    check("omp_pause_resource", omp_pause_resource(omp_pause_soft, omp_get_initial_device()) == 0);
}

static int run_rows(int arguments) {
    declared();
    reductions();
    loops();
#ifndef __clang__
    newer_loops();
#endif
    loops_of_other_kinds();
    tasks();  // Behind a league LLVM's runtime may not end its tasks.
    synchronization();
    leagues();
    routines();
    locks();
    memory();
    devices();
    if (arguments > 1) omp_display_env(1);
    return wrong;
}

#ifndef __cplusplus
int main(int arguments, char** words) {
    (void)words;
    return run_rows(arguments);
}
#endif
