// SPDX-License-Identifier: BSD-3-Clause
// Reductions as clang compiles them: of regions and loops, by all threads at once, one behind the
// other, with a barrier and without; and of tasks: of taskgroups, of regions and of loops; nested;
// with types, operators and arrays of the program's own. Right for any number of threads.
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "verdict.h"

struct extent {
    int low, high;
};
static void widen(struct extent* into, const struct extent* from) {
    if (from->low < into->low) into->low = from->low;
    if (from->high > into->high) into->high = from->high;
}
#pragma omp declare reduction(widened                     \
                              : struct extent             \
                              : widen(&omp_out, &omp_in)) \
    initializer(omp_priv = {1 << 20, -(1 << 20)})

/// Threads come to these in any order, and to the second before others have come to the first.
static void of_regions(int threads) {
    int right = 1;
    for (int round = 1; round <= 200; round++) {
        long sum = 3, product = 1, counts[10] = {0};
        double most = -1;
        struct extent extent = {0, 0};
#pragma omp parallel reduction(+ : sum, counts) reduction(* : product) reduction(max : most) \
    reduction(widened : extent)
        {
            const int thread = omp_get_thread_num();
            if (thread == round % threads) compute(2000);
            sum += round + thread;
            product *= thread < 8 ? 2 : 1;
            counts[thread % 10] += round;
            most = 0.5 * thread + round;
            extent = (struct extent){-thread, round + thread};
        }
        long counted = 0;
        for (int i = 0; i < 10; i++) counted += counts[i];
        right &= sum == 3 + (long)threads * round + (long)threads * (threads - 1) / 2;
        right &= product == 1l << (threads < 8 ? threads : 8) && counted == (long)threads * round;
        right &= most == 0.5 * (threads - 1) + round;
        right &= extent.low == 1 - threads && extent.high == round + threads - 1;
    }
    check("of regions", right);

    long first = 0, second = 0, third = 0, seen_wrong = 0;
    double other_first = 0, other_second = 0;
#pragma omp parallel reduction(+ : seen_wrong)
    for (int round = 1; round <= 200; round++) {
#pragma omp for nowait reduction(+ : first, other_first)
        for (int i = 0; i < 40; i++) first += i, other_first += 0.5;
#pragma omp for nowait reduction(+ : second, other_second)
        for (int i = 0; i < 40; i++) second += 2 * i, other_second += 0.25;
#pragma omp for reduction(+ : third)
        for (int i = 0; i < 40; i++) third += 1;
        seen_wrong += third != 40l * round || first != 780l * round || second != 1560l * round;
#pragma omp barrier
    }
    check("of loops, one behind the other", seen_wrong == 0 && first == 156000 &&
                                                second == 312000 && third == 8000 &&
                                                other_first == 4000 && other_second == 2000);
}

static void of_groups(void) {
    long sum = 5, product = 1;
    struct extent extent = {0, 0};
    int counts[10] = {0};
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup task_reduction(+ : sum, counts) task_reduction(* : product) \
    task_reduction(widened : extent)
        for (int i = 0; i < 90; i++) {
#pragma omp task in_reduction(+ : sum, counts) in_reduction(widened : extent) firstprivate(i)
            {
                compute(3000);
                sum += i;
                counts[i % 10]++;
                const struct extent own = {-i, 2 * i};
                widen(&extent, &own);
            }
            if (i % 30 == 0) {
#pragma omp task in_reduction(* : product)
                product *= 3;
            }
        }
    }
    int right = 1;
    for (int i = 0; i < 10; i++) right &= counts[i] == 9;
    check("of a taskgroup", sum == 5 + 89 * 45 && product == 27);
    check("of an array and of a type", right && extent.low == -89 && extent.high == 178);

    long outer = 0, inner = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(+ : outer)
    for (int i = 0; i < 10; i++) {
#pragma omp task in_reduction(+ : outer)
        {
            compute(1000);
            outer += 1;
        }
#pragma omp taskgroup task_reduction(+ : inner)
        for (int k = 0; k < 5; k++)
#pragma omp task in_reduction(+ : inner)
        {
            compute(1000);
            inner += 10;
        }
    }
    check("one inside another", outer == 10 && inner == 500);
}

static void of_all_threads(int threads) {
    long sum = 100, looped = 0;
#pragma omp parallel reduction(task, + : sum)
    {
        sum += 1;
        for (int i = 0; i < 6; i++)
#pragma omp task in_reduction(+ : sum)
        {
            compute(3000);
            sum += 10;
        }
    }
    check("reduction(task) of a region", sum == 100 + threads * 61L);
#pragma omp parallel
    {
#pragma omp for reduction(task, + : looped)
        for (int i = 0; i < 50; i++) {
            looped += 1;
#pragma omp task in_reduction(+ : looped) firstprivate(i)
            {
                compute(2000);
                looped += i * 100;
            }
        }
    }
    check("reduction(task) of a loop", looped == 50 + 1225 * 100);
}

static void of_taskloops(void) {
    long sum = 0, twice = 0;
    double most = -1;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop reduction(+ : sum) reduction(max : most) num_tasks(16)
        for (int i = 0; i < 300; i++) {
            compute(100);
            sum += i;
            const double value = i % 100 * 0.5;
            most = most > value ? most : value;
        }
#pragma omp taskgroup task_reduction(+ : twice)
        {
#pragma omp taskloop in_reduction(+ : twice) grainsize(9)
            for (int i = 0; i < 100; i++) twice += i;
#pragma omp taskloop in_reduction(+ : twice) nogroup
            for (int i = 0; i < 100; i++) twice += i;
        }
    }
    check("of taskloops", sum == 44850 && most == 49.5 && twice == 9900);
}

int main(void) {
    const int threads = team_size();
    of_regions(threads);
    of_groups();
    of_all_threads(threads);
    of_taskloops();
    return wrong;
}
