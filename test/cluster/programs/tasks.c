// SPDX-License-Identifier: BSD-3-Clause
// Tasks: what waits for them, which threads see what they wrote, and that every thread of the job
// gets some.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

static long counted;

static void count_one(void) {
#pragma omp atomic
    counted++;
}

// Each task leaves its children to the thread that waits for all.
static void leave_children(int depth) {
    compute(1000);
    count_one();
    if (depth == 0) return;
    for (int i = 0; i < 3; i++)
#pragma omp task firstprivate(depth)
        leave_children(depth - 1);
}

// Parents' locals are written by children on other nodes.
static long sum_of_tree(int depth) {
    long parts[3] = {0, 0, 0};
    if (depth == 0) {
        compute(2000);
        return 1;
    }
    for (int i = 0; i < 3; i++)
#pragma omp task shared(parts) firstprivate(depth, i) untied mergeable
        parts[i] = sum_of_tree(depth - 1);
#pragma omp taskwait
    return parts[0] + parts[1] + parts[2];
}

static void waits(void) {
    counted = 0;
#pragma omp parallel
#pragma omp master
    leave_children(5);
    check_equal("the end of a region waits for all", counted, 364);

    counted = 0;
#pragma omp parallel
    {
#pragma omp single nowait
        leave_children(5);
#pragma omp barrier
        long seen;
#pragma omp atomic read
        seen = counted;
        if (seen != 364) wrong = 2;
    }
    check_equal("a barrier does", counted, 364);

    counted = 0;
    long inside = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup
        leave_children(5);
        inside = counted;
    }
    check_equal("a taskgroup does", inside, 364);

    long sum = 0;
#pragma omp parallel
#pragma omp single
    sum = sum_of_tree(6);
    check_equal("taskwait waits for children", sum, 729);

    counted = 0;
#pragma omp parallel
    {
        for (int i = 0; i < 40; i++)
#pragma omp task
        {
            compute(3000);
            count_one();
        }
#pragma omp taskyield
#pragma omp taskwait
    }
    check_equal("every thread makes tasks", counted, 40L * omp_get_max_threads());
}

static void everybody_works(void) {
    const int threads = omp_get_max_threads();
    int* executed = calloc((size_t)threads, sizeof *executed);
    long made = 0;
    int all = 0;
    const double end = omp_get_wtime() + 30;
#pragma omp parallel
#pragma omp single
    while (!all && omp_get_wtime() < end) {
#pragma omp taskgroup
        for (int i = 0; i < 8 * threads; i++) {
            made++;
#pragma omp task
            {
                compute(100000);
#pragma omp atomic
                executed[omp_get_thread_num()]++;
            }
        }
        all = 1;
        for (int t = 0; t < threads; t++) all &= executed[t] > 0;
    }
    long done = 0;
    for (int t = 0; t < threads; t++) done += executed[t];
    check_equal("tasks done", done == made, 1);
    check_equal("every thread executes tasks", all, 1);
    free(executed);
}

// Threads of the job that are not in a region's team leave its tasks alone.
static void smaller_teams(void) {
    const int most = omp_get_max_threads();
    long strangers = 0, done = 0;
    for (int round = 0; round < 12; round++) {
        const int threads = 1 + round % most;
#pragma omp parallel num_threads(threads)
#pragma omp single
        for (int i = 0; i < 60; i++)
#pragma omp task shared(strangers, done) firstprivate(threads)
        {
            compute(2000);
#pragma omp atomic
            done++;
            if (omp_get_thread_num() >= threads || omp_get_num_threads() != threads) {
#pragma omp atomic
                strangers++;
            }
        }
    }
    check_equal("tasks of smaller teams", done, 720);
    check_equal("are executed by their members", strangers, 0);
}

static void at_once(void) {
    int value = 0;
#pragma omp parallel
#pragma omp single
    {
        int here = omp_get_thread_num(), same = 0;
#pragma omp task if (0) shared(value, same) firstprivate(here)
        {
            value++;
            same = omp_get_thread_num() == here;
        }
        check_equal("if (0) is executed at once", value + 10 * same, 11);
#pragma omp task final(1) shared(value)
        {
            int inner = 0;
            value += 10 * omp_in_final();
#pragma omp task shared(inner)
            inner = 1 + omp_in_final();
            value += 100 * inner;
        }
#pragma omp taskwait
        check_equal("final tasks' children are, too", value, 211);
    }
    int made = 0;
#pragma omp task shared(made)
    made = 1;
#pragma omp taskwait
    check_equal("tasks outside regions", made, 1);
    int sum = 0;
#pragma omp parallel num_threads(1)
    {
        for (int i = 0; i < 10; i++)
#pragma omp task shared(sum)
            sum += i;
#pragma omp taskwait
        sum *= 2;
    }
    check_equal("tasks of a team of one", sum, 90);
}

static void nested(void) {
    long sums[8] = {0};
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 8; i++)
#pragma omp task shared(sums) firstprivate(i)
    {
        omp_set_num_threads(3 + i);
#pragma omp parallel num_threads(1)
        {
            for (int k = 0; k < 5; k++)
#pragma omp task shared(sums)
                sums[i] += k;
        }
        if (omp_get_max_threads() != 3 + i) wrong = 3;
    }
    long sum = 0;
    for (int i = 0; i < 8; i++) sum += sums[i];
    check_equal("regions inside tasks", sum, 80);
}

int main(void) {
    waits();
    everybody_works();
    smaller_teams();
    at_once();
    nested();
    return wrong;
}
