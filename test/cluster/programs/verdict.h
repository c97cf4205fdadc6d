// SPDX-License-Identifier: BSD-3-Clause
// What programs that judge themselves share: each claim prints a line, and `wrong` is how many were
// not so.
#pragma once

#include <omp.h>
#include <stdio.h>

static int wrong;

static inline void check(const char* what, int right) {
    printf("%s %s\n", right ? "right" : "WRONG", what);
    if (!right) ++wrong;
}

static inline void check_equal(const char* what, long got, long wanted) {
    if (got == wanted) {
        printf("right %s\n", what);
    } else {
        printf("WRONG %s: %ld, not %ld\n", what, got, wanted);
        ++wrong;
    }
}

/// How many threads a region has.
static inline int team_size(void) {
    int threads = 0;
#pragma omp parallel
#pragma omp master
    threads = omp_get_num_threads();
    return threads;
}

/// Takes a thread's time, in steps of about a nanosecond.
static inline void compute(int steps) {
    volatile double x = 0;
    for (int k = 0; k < steps; k++) x = x + k;
}
