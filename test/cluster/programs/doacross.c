// SPDX-License-Identifier: BSD-3-Clause
// Loops whose iterations wait for others, scans, conditional lastprivate, and reductions that tasks
// take part in.
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "verdict.h"

enum { side = 14, count = 200 };
static long grid[side][side], line[count], sums[count];

static void wave(const char* what, int kind) {
    memset(grid, 0, sizeof grid);
    grid[0][1] = 1;
    switch (kind) {
#define WAVE(clauses)                                                                \
    _Pragma(clauses) for (int i = 1; i < side; i++) for (int j = 1; j < side; j++) { \
        _Pragma("omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)");      \
        grid[i][j] = grid[i - 1][j] + grid[i][j - 1];                                \
        _Pragma("omp ordered depend(source)");                                       \
    }                                                                                \
    break;
        case 0: WAVE("omp parallel for ordered(2)")
        case 1: WAVE("omp parallel for ordered(2) schedule(static, 1)")
        case 2: WAVE("omp parallel for ordered(2) schedule(dynamic, 2)")
        case 3: WAVE("omp parallel for ordered(2) schedule(guided)")
        case 4: WAVE("omp parallel for ordered(2) schedule(runtime)")
    }
    check_equal(what, grid[side - 1][side - 1], 2704156);
}

static void chain(void) {
    memset(line, 0, sizeof line);
#pragma omp parallel
    {
        for (int round = 0; round < 3; round++) {
#pragma omp for ordered(1) schedule(static, 3) nowait
            for (unsigned long long i = 1; i < count; i++) {
#pragma omp ordered depend(sink : i - 1)
                line[i] = i == 1 ? line[count - 1] + 1 : line[i - 1] + 1;
#pragma omp ordered depend(source)
            }
#pragma omp barrier
        }
    }
    check_equal("a chain, three times", line[count - 1], 3 * (count - 1));
}

static void scans(void) {
    for (int i = 0; i < count; i++) line[i] = i % 7 - 2;
    long sum = 5, expected = 5, good = 0;
#pragma omp parallel for reduction(inscan, + : sum)
    for (int i = 0; i < count; i++) {
        sum += line[i];
#pragma omp scan inclusive(sum)
        sums[i] = sum;
    }
    for (int i = 0; i < count; i++) {
        expected += line[i];
        good += sums[i] == expected;
    }
    check_equal("inclusive scan", good + (sum == expected), count + 1);
    sum = 0;
    expected = good = 0;
#pragma omp parallel for reduction(inscan, + : sum)
    for (int i = 0; i < count; i++) {
        sums[i] = sum;
#pragma omp scan exclusive(sum)
        sum += line[i];
    }
    for (int i = 0; i < count; i++) {
        good += sums[i] == expected;
        expected += line[i];
    }
    check_equal("exclusive scan", good + (sum == expected), count + 1);

    for (int round = 0; round < 70; round++) {
        int last = -1;
#pragma omp parallel for lastprivate(conditional : last) schedule(dynamic, 3)
        for (int i = 0; i < count; i++)
            if (i < 100 + round && line[i] == 4) last = i;
        int wanted = -1;
        for (int i = 0; i < 100 + round; i++)
            if (line[i] == 4) wanted = i;
        if (last != wanted) wrong = 2;
    }
    check_equal("conditional lastprivate", wrong, 0);
}

static void reductions(void) {
    long sum = 0;
#pragma omp parallel reduction(task, + : sum)
    {
        sum += 1;
        for (int i = 0; i < 10; i++)
#pragma omp task in_reduction(+ : sum)
            sum += 2;
    }
    check_equal("tasks of a region", sum, 21L * omp_get_max_threads());
    sum = 0;
#pragma omp parallel
    {
#pragma omp for reduction(task, + : sum) schedule(dynamic, 5)
        for (int i = 0; i < 100; i++) {
#pragma omp task in_reduction(+ : sum) firstprivate(i)
            sum += i;
        }
#pragma omp sections reduction(task, + : sum)
        {
#pragma omp section
#pragma omp task in_reduction(+ : sum)
            sum += 1000;
#pragma omp section
            sum += 2000;
        }
    }
    check_equal("tasks of loops and sections", sum, 7950);
    sum = 0;
#pragma omp parallel
#pragma omp scope reduction(task, + : sum)
    {
#pragma omp task in_reduction(+ : sum)
        sum += 3;
    }
    check_equal("tasks of a scope", sum, 3L * omp_get_max_threads());
}

int main(void) {
    wave("a wave front", 0);
    wave("round robin", 1);
    wave("dynamic", 2);
    wave("guided", 3);
    wave("runtime", 4);
    chain();
    scans();
    reductions();
    return wrong;
}
