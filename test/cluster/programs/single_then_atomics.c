// SPDX-License-Identifier: BSD-3-Clause
// Role: what a thread stores in a `single nowait` long before the others come to their atomics,
// reductions, critical sections or locks behind it is there for them. The executing thread stays in
// the construct for longer than that, so nothing else can have told of the store.
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { rounds = 6, cells = 3000, stay_us = 3000, come_us = 1000 };

static double by_atomic, by_reduction, by_critical, by_lock, by_section, many[cells];
static long by_two, by_two_more, chained[2];
static omp_lock_t lock;

static void stay(void) { usleep(stay_us); }
static void come(void) { usleep(come_us); }

static void atomics(void) {
#pragma omp single nowait
    {
        by_atomic = 1;
        stay();
    }
    come();
#pragma omp atomic
    by_atomic += 2;
}

static void reductions(void) {
#pragma omp single nowait
    {
        by_reduction = 1;
        by_two = by_two_more = 5;
        stay();
    }
    come();
#pragma omp for reduction(+ : by_reduction) nowait
    for (int i = 0; i < 100; ++i) by_reduction += 1;
#pragma omp for reduction(+ : by_two, by_two_more)
    for (int i = 0; i < 100; ++i) {
        by_two += 1;
        by_two_more += 2;
    }
}

static void sections(void) {
#pragma omp sections nowait
    {
#pragma omp section
        {
            by_section = 1;
            stay();
        }
    }
    come();
#pragma omp atomic
    by_section += 2;
}

static void locked(void) {
#pragma omp single nowait
    {
        by_critical = 1;
        stay();
    }
    come();
#pragma omp critical
    by_critical += 2;
#pragma omp single nowait
    {
        by_lock = 1;
        stay();
    }
    come();
    omp_set_lock(&lock);
    by_lock += 2;
    omp_unset_lock(&lock);
}

// Two singles in a row, of two threads maybe.
static void in_a_row(void) {
    for (int k = 0; k < 2; ++k) {
#pragma omp single nowait
        {
            chained[k] = 1;
            stay();
        }
    }
    come();
    for (int k = 0; k < 2; ++k) {
#pragma omp atomic
        chained[k] += 2;
    }
}

static void arrays(void) {
#pragma omp single nowait
    {
        for (int i = 0; i < cells; ++i) many[i] = 1;
        stay();
    }
    come();
    for (int i = 0; i < cells; i += 100) {
#pragma omp atomic
        many[i] += 2;
    }
}

int main(void) {
    int wrong[8] = {0};
    int threads = 1;
    omp_init_lock(&lock);
#pragma omp parallel
    for (int round = 0; round < rounds; ++round) {
        atomics();
        reductions();
#ifndef __clang__  // It makes a loop of sections, which nothing tells from other loops.
        sections();
#endif
        locked();
        in_a_row();
        arrays();
#pragma omp barrier
#pragma omp single
        {
            threads = omp_get_num_threads();
            const double sum = 1 + 2 * threads;
            wrong[0] += by_atomic != sum;
            wrong[1] += by_reduction != 101;
            wrong[2] += by_two != 105 || by_two_more != 205;
#ifndef __clang__
            wrong[3] += by_section != sum;
#endif
            wrong[4] += by_critical != sum;
            wrong[5] += by_lock != sum;
            wrong[6] += chained[0] != sum || chained[1] != sum;
            for (int i = 0; i < cells; ++i) wrong[7] += many[i] != (i % 100 == 0 ? sum : 1);
        }
    }
    for (int k = 0; k < 8; ++k) printf("%d: %d wrong\n", k, wrong[k]);
    return 0;
}
