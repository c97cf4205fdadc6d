// SPDX-License-Identifier: BSD-3-Clause
// Cancellation as clang asks for it: of loops dealt out in advance and by chunks, of sections, of a
// region and of a taskgroup. Prints what holds whichever thread cancels.
#include <omp.h>
#include <stdio.h>

static int static_loop(void) {
    int late = 0;
#pragma omp parallel reduction(+ : late)
    {
        int asked = 0;
#pragma omp for schedule(static)
        for (int i = 0; i < 4000; ++i) {
            late += asked;
            asked |= i % 500 == 10;
#pragma omp cancel for if (i % 500 == 10)
#pragma omp cancellation point for
        }
    }
    return late;
}

static int dealt_loop(void) {
    int whole = 1, taken = 0;
#pragma omp parallel reduction(+ : taken)
    {
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 100000; ++i) {
            ++taken;
#pragma omp cancel for
        }
#pragma omp barrier
    }
    if (taken > 64) whole = 0;
    return whole;
}

static int region(void) {
    int behind = 0;
#pragma omp parallel reduction(+ : behind)
    {
#pragma omp cancel parallel
        ++behind;
    }
    return behind;
}

static int group(void) {
    int later = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup
        {
#pragma omp task
            {
#pragma omp cancel taskgroup
            }
        }
        for (int i = 0; i < 20; ++i) {
#pragma omp task
#pragma omp atomic
            ++later;
        }
    }
    return later;
}

int main(void) {
    const int on = omp_get_cancellation();
    const int late = static_loop(), dealt = dealt_loop(), behind = region();
    if (on)
        printf("late %d, few %d, behind %d, later %d\n", late, dealt, behind, group());
    else
        printf("off: late %d, behind some %d, later %d\n", late, behind > 0, group());
    return 0;
}
