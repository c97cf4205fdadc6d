// SPDX-License-Identifier: BSD-3-Clause
// Regions inside regions, as libgomp counts them: levels, ancestors and sizes; every construct in
// an inner team; tasks of inner teams; inner regions in tasks that may have gone to another node.
// Only what does not depend on timing is printed.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { outer_max = 64, inner_max = 4 };

static int cell[outer_max][inner_max][8];

static void check(int holds, const char* what) {
    if (holds) return;
    printf("wrong: %s\n", what);
    exit(1);
}

static void levels(void) {
    memset(cell, 0, sizeof cell);
    int sizes = 0;
#pragma omp parallel reduction(+ : sizes)
    {
        const int outer = omp_get_thread_num(), outer_size = omp_get_num_threads();
        int inner_total = 0;
#pragma omp parallel num_threads(3) reduction(+ : inner_total)
        {
            const int inner = omp_get_thread_num();
            check(omp_get_num_threads() == 3, "size of an inner team");
            check(omp_get_level() == 2 && omp_get_active_level() == 2, "levels");
            check(omp_get_ancestor_thread_num(0) == 0, "ancestor at 0");
            check(omp_get_ancestor_thread_num(1) == outer, "ancestor at 1");
            check(omp_get_ancestor_thread_num(2) == inner, "ancestor at 2");
            check(omp_get_ancestor_thread_num(3) == -1, "no ancestor");
            check(omp_get_team_size(1) == outer_size && omp_get_team_size(2) == 3, "team sizes");
            cell[outer][inner][0] = 100 * outer + inner;
#pragma omp barrier
            check(cell[outer][(inner + 1) % 3][0] == 100 * outer + (inner + 1) % 3, "barrier");
            inner_total += 1;
#pragma omp parallel num_threads(2)
            {
                check(omp_get_level() == 3 && omp_get_num_threads() == 2, "third level");
                check(omp_get_ancestor_thread_num(2) == inner, "ancestor from level 3");
#pragma omp atomic
                cell[outer][inner][1]++;
            }
        }
        sizes += inner_total;
        check(omp_get_level() == 1, "back");
    }
    int third = 0, ok = 0;
    const int threads = omp_get_max_threads();
    for (int o = 0; o < threads; ++o)
        for (int i = 0; i < 3; ++i) third += cell[o][i][1], ok += cell[o][i][0] == 100 * o + i;
    printf("levels: %d inner threads, %d of the third level, %d cells\n", sizes, third, ok);
}

static void constructs(void) {
    enum { count = 300 };
    static int sums[outer_max], singles[outer_max], order[outer_max], copies[outer_max];
    static int criticals[outer_max], sections[outer_max], wave[outer_max];
#pragma omp parallel
    {
        const int outer = omp_get_thread_num();
        int sum = 0, last = -1, in_order = 1, critical = 0, section = 0, single = 0, copied = 0;
        int grid[20] = {0};
#pragma omp parallel num_threads(4) reduction(+ : copied)
        {
            for (int round = 0; round < 80; ++round) {  // More constructs than slots.
#pragma omp for schedule(dynamic, 3) reduction(+ : sum) nowait
                for (int i = 0; i < count; ++i) sum += i;
#pragma omp single nowait
                ++single;
#pragma omp for schedule(guided)
                for (int i = 0; i < 40; ++i) {
#pragma omp atomic
                    grid[0] += 1;
                }
            }
#pragma omp for ordered schedule(dynamic)
            for (int i = 0; i < 40; ++i) {
#pragma omp ordered
                {
                    in_order &= i == last + 1;
                    last = i;
                }
            }
            for (int i = 0; i < 50; ++i) {
#pragma omp critical
                ++critical;
            }
#pragma omp sections
            {
#pragma omp section
#pragma omp atomic
                section += 1;
#pragma omp section
#pragma omp atomic
                section += 10;
            }
            int value = 0;
#pragma omp single copyprivate(value)
            value = 7 + outer;
            copied += value;
#pragma omp for ordered(1)
            for (int i = 1; i < 20; ++i) {
#pragma omp ordered depend(sink : i - 1)
                grid[i] = grid[i - 1] + 1;
#pragma omp ordered depend(source)
            }
        }
        sums[outer] = sum, singles[outer] = single, order[outer] = in_order && last == 39;
        criticals[outer] = critical, sections[outer] = section, copies[outer] = copied;
        wave[outer] = grid[19] - grid[0];
    }
    for (int o = 0; o < omp_get_max_threads(); ++o)
        printf("constructs %d: %d %d %d %d %d %d %d\n", o, sums[o], singles[o], order[o],
               criticals[o], sections[o], copies[o], wave[o]);
}

static long fibonacci(int n) {
    if (n < 2) return n;
    long a, b;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
#pragma omp task shared(b)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

static void tasks(void) {
    static long found[outer_max];
    static int loops[outer_max], left[outer_max];
#pragma omp parallel
    {
        const int outer = omp_get_thread_num();
        long result = 0;
        int iterations = 0, at_end = 0;
#pragma omp parallel num_threads(3)
        {
#pragma omp single nowait
            {
                result = fibonacci(13);
#pragma omp taskloop grainsize(2)
                for (int i = 0; i < 100; ++i) {
#pragma omp atomic
                    iterations += 1;
                }
                for (int i = 0; i < 20; ++i) {
#pragma omp task
#pragma omp atomic
                    at_end += 1;
                }
            }
        }
        found[outer] = result, loops[outer] = iterations, left[outer] = at_end;
    }
    for (int o = 0; o < omp_get_max_threads(); ++o)
        printf("tasks %d: %ld %d %d\n", o, found[o], loops[o], left[o]);
    int sum = 0;
#pragma omp parallel
#pragma omp single
    for (int t = 0; t < 40; ++t) {
#pragma omp task shared(sum)
        {
            int inner = 0;
#pragma omp parallel num_threads(2) reduction(+ : inner)
            inner += omp_get_num_threads() * (1 + omp_get_thread_num());
#pragma omp atomic
            sum += inner;
        }
    }
    printf("regions in tasks: %d\n", sum);
}

static void controls(void) {
    printf("limits: %d supported, %d at most, nested %d\n", omp_get_supported_active_levels(),
           omp_get_max_active_levels(), omp_get_nested());
    int one = 0, wanted = 0;
    omp_set_max_active_levels(1);
#pragma omp parallel reduction(+ : one)
    {
#pragma omp parallel num_threads(4) reduction(+ : one)
        one += omp_get_num_threads() == 1 && omp_get_level() == 2 && omp_get_active_level() == 1;
    }
    omp_set_max_active_levels(3);
#pragma omp parallel reduction(+ : wanted)
    {
        omp_set_num_threads(2 + omp_get_thread_num() % 2);
#pragma omp parallel reduction(+ : wanted)
        wanted += omp_get_num_threads() == 2 + omp_get_ancestor_thread_num(1) % 2;
    }
    printf("controls: %d %d\n", one, wanted);
    // A region of one thread between: the one inside is the first active one.
    int deep = 0;
#pragma omp parallel num_threads(1)
    {
#pragma omp parallel reduction(+ : deep)
        deep += omp_get_level() == 2 && omp_get_active_level() == 1;
    }
    printf("inside a region of one thread: %d\n", deep);
}

int main(void) {
    controls();
    levels();
    constructs();
    tasks();
    for (int round = 0; round < 200; ++round) {
        int runs = 0;
#pragma omp parallel reduction(+ : runs)
        {
#pragma omp parallel num_threads(1 + round % 4) reduction(+ : runs)
            runs += 1;
        }
        check(runs == omp_get_max_threads() * (1 + round % 4), "rounds");
    }
    printf("done\n");
    return 0;
}
