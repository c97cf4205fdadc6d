// SPDX-License-Identifier: BSD-3-Clause
// Every construct of hiroba's OpenMP runtime as gcc compiles it; prints one line per construct and
// exits with the number of wrong ones. Correct for any number of threads from 1 to 64.
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "verdict.h"

enum { count = 1000, threads_max = 64 };

static int hits[count];
static long order[count];
static int ordered_at;
static int private_value = 7;
#pragma omp threadprivate(private_value)

static int every_hit_is(int expected) {
    for (int i = 0; i < count; ++i)
        if (hits[i] != expected) return 0;
    memset(hits, 0, sizeof hits);
    return 1;
}

static void loops(void) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < count; ++i) hits[i]++;
    check("for static", every_hit_is(1));
#pragma omp parallel for schedule(static, 7)
    for (int i = 0; i < count; ++i) hits[i]++;
    check("for static,7", every_hit_is(1));
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < count; ++i) hits[i]++;
    check("parallel for dynamic", every_hit_is(1));
#pragma omp parallel for schedule(monotonic : dynamic, 9)
    for (int i = count - 1; i >= 0; --i) hits[i]++;
    check("parallel for monotonic:dynamic,9 downward", every_hit_is(1));
#pragma omp parallel for schedule(guided, 3)
    for (int i = 0; i < count; ++i) hits[i]++;
    check("parallel for guided", every_hit_is(1));
    omp_set_schedule(omp_sched_guided, 4);
#pragma omp parallel for schedule(runtime)
    for (int i = 0; i < count; ++i) hits[i]++;
    check("parallel for runtime", every_hit_is(1));
#pragma omp parallel
    {
        for (int repeat = 0; repeat < 200; ++repeat) {
#pragma omp for schedule(dynamic, 5) nowait
            for (int i = 0; i < count; i += 2)
#pragma omp atomic
                hits[i]++;
#pragma omp for schedule(guided)
            for (int i = count - 1; i > 0; i -= 2)
#pragma omp atomic
                hits[i]++;
        }
    }
    check("repeated for nowait", every_hit_is(200));
}

static void extreme_loops(void) {
    long sum = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
    for (long i = LONG_MAX - 9; i < LONG_MAX; i += 3) sum += LONG_MAX - i;
    check("signed loop to the top", sum == 9 + 6 + 3);
    unsigned long long seen = 0;
#pragma omp parallel for schedule(guided) reduction(+ : seen)
    for (unsigned long long i = ULLONG_MAX - 21; i < ULLONG_MAX; i += 7) seen += ULLONG_MAX - i;
    check("unsigned loop to the top", seen == 21 + 14 + 7);
    seen = 0;
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : seen)
    for (unsigned long long i = 50; i > 3; i -= 5) seen += i;
    check("unsigned loop downward", seen == 50 + 45 + 40 + 35 + 30 + 25 + 20 + 15 + 10 + 5);
    int none = 0;
#pragma omp parallel for schedule(dynamic)
    for (int i = 5; i < 5; ++i) none = 1;
    check("empty loop", none == 0);
    int last = -1;
#pragma omp parallel for schedule(dynamic, 3) lastprivate(last)
    for (int i = 0; i < count; ++i) last = i;
    check("lastprivate", last == count - 1);
}

static int in_order(int n) {
    for (int i = 0; i < n; ++i)
        if (order[i] != i) return 0;
    ordered_at = 0;
    return 1;
}

static void ordered(void) {
#pragma omp parallel for ordered schedule(dynamic, 3)
    for (int i = 0; i < 200; ++i)
#pragma omp ordered
        order[ordered_at++] = i;
    check("ordered dynamic", in_order(200));
#pragma omp parallel for ordered schedule(static)
    for (int i = 0; i < 200; ++i)
#pragma omp ordered
        order[ordered_at++] = i;
    check("ordered static", in_order(200));
#pragma omp parallel for ordered schedule(guided)
    for (unsigned long long i = 0; i < 200; ++i)
#pragma omp ordered
        order[ordered_at++] = (long)i;
    check("ordered guided unsigned", in_order(200));
}

static void blocks(void) {
    int executed = 0, sections[5] = {0}, copies_wrong = 0;
#pragma omp parallel
    for (int i = 0; i < 100; ++i) {
#pragma omp single
        executed++;
    }
    check("single", executed == 100);
#pragma omp parallel
    for (int i = 0; i < 100; ++i) {
        int value = -1;
#pragma omp single copyprivate(value)
        value = i;
        if (value != i)
#pragma omp atomic
            copies_wrong++;
    }
    check("single copyprivate", copies_wrong == 0);
#pragma omp parallel sections
    {
#pragma omp section
        sections[0]++;
#pragma omp section
        sections[1]++;
#pragma omp section
        sections[2]++;
    }
#pragma omp parallel
    {
#pragma omp sections
        {
#pragma omp section
            sections[3]++;
#pragma omp section
            sections[4]++;
        }
    }
    check("sections", sections[0] == 1 && sections[1] == 1 && sections[2] == 1 &&
                          sections[3] == 1 && sections[4] == 1);
    int masters = 0, behind = 0;
#pragma omp parallel
    {
#pragma omp master
        masters++;
#pragma omp barrier
        if (masters != 1)
#pragma omp atomic
            behind++;
    }
    check("master and barrier", masters == 1 && behind == 0);
}

static void exclusion(void) {
    int unnamed = 0, named = 0, locked = 0, nested = 0, threads = 0;
    double sum = 0, product = 1;
    int maximum = 0;
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel reduction(+ : sum) reduction(* : product) reduction(max : maximum)
    {
#pragma omp single
        threads = omp_get_num_threads();
        for (int i = 0; i < 100; ++i) {
#pragma omp critical
            unnamed++;
#pragma omp critical(name)
            named++;
            omp_set_lock(&lock);
            locked++;
            omp_unset_lock(&lock);
            omp_set_nest_lock(&nest);
            if (omp_test_nest_lock(&nest) == 2) nested++;
            omp_unset_nest_lock(&nest);
            omp_unset_nest_lock(&nest);
        }
        sum += 1;
        product *= 2;
        maximum = omp_get_thread_num();
    }
    check("critical", unnamed == 100 * threads && named == 100 * threads);
    check("locks", locked == 100 * threads && nested == 100 * threads);
    double powers = 1;
    for (int i = 0; i < threads; ++i) powers *= 2;
    check("reductions", sum == threads && product == powers && maximum == threads - 1);
    check("test_lock", omp_test_lock(&lock) && !omp_test_lock(&lock));
    omp_unset_lock(&lock);
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
}

static void environment(void) {
    int numbers[threads_max] = {0}, size = 0, bad = 0;
#pragma omp parallel
    {
        numbers[omp_get_thread_num()]++;
#pragma omp single
        size = omp_get_num_threads();
    }
    for (int i = 0; i < size; ++i) bad += numbers[i] != 1;
    check("thread numbers", bad == 0 && size == omp_get_max_threads());
    private_value = 42;
#pragma omp parallel copyin(private_value)
    if (private_value != 42)
#pragma omp atomic
        bad++;
    check("copyin", bad == 0);
#pragma omp parallel num_threads(2)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2)
        if (omp_get_level() != 2 || omp_get_num_threads() != 1 ||
            omp_get_ancestor_thread_num(1) != outer)
#pragma omp atomic
            bad++;
    }
    check("nested", bad == 0);
#pragma omp parallel if (0)
    bad += omp_get_num_threads() != 1 || omp_in_parallel() || omp_get_level() != 1;
    check("if(0)", bad == 0);
#pragma omp parallel
    {
        omp_set_num_threads(1);
        omp_set_schedule(omp_sched_static, 3);
    }
    omp_sched_t kind;
    int chunk;
    omp_get_schedule(&kind, &chunk);
    check("set inside stays inside",
          omp_get_max_threads() == size && kind == omp_sched_guided && chunk == 4);
    check("team size argument", omp_get_team_size(0) == 1 && omp_get_team_size(1) == -1);
}

int main(void) {
    loops();
    extreme_loops();
    ordered();
    blocks();
    exclusion();
    environment();
    return wrong;
}
