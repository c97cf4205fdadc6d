// SPDX-License-Identifier: BSD-3-Clause
// Regions with every construct, many times each, of several functions and sizes of teams: what they
// compute and what their threads are told may not depend on where they run.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rounds = 60, cells = 6000 };
static long cell[cells], handed[64];
static int wrong;

static void check(int holds, const char* what) {
    if (holds) return;
#pragma omp atomic
    wrong += 1;
    printf("wrong: %s\n", what);
}

static unsigned computing(void) {
    unsigned word;
    __asm__ volatile("stmxcsr %0" : "=m"(word));
    return word & 0xffc0;
}

static void compute_otherwise(unsigned word) { __asm__ volatile("ldmxcsr %0" : : "m"(word)); }

/// What a thread can ask.
static void queries(int threads) {
    int seen[64] = {0};
#pragma omp parallel num_threads(threads)
    {
        check(omp_get_num_threads() == threads, "size of the team");
        check(omp_get_level() == 1 && omp_in_parallel() == (threads > 1), "level");
        check(omp_get_ancestor_thread_num(0) == 0, "thread outside");
        check(omp_get_ancestor_thread_num(1) == omp_get_thread_num(), "thread at level 1");
        check(omp_get_team_size(1) == threads, "size at level 1");
#pragma omp atomic
        seen[omp_get_thread_num()] += 1;
    }
    for (int i = 0; i < threads; ++i) check(seen[i] == 1, "each number once");
}

/// The same elements for the same thread, neighbours' of the round before, a serial part.
static long sweep(int round, int threads) {
    long sum = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : sum)
    for (int i = 0; i < cells; ++i) {
        cell[i] += i % 7 + round + (i > 0 ? 0 : 1);
        sum += cell[i];
    }
    cell[round % cells] += 3;
    return sum + 3;
}

static void constructs(int round, int threads) {
    long passed = -1, in_order = 0, singles = 0, locked = 0, met = 0, made = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(threads)
    {
        long mine = 0;
#pragma omp single copyprivate(mine)
        mine = round * 10 + 1;
        check(mine == round * 10 + 1, "copyprivate");
        handed[omp_get_thread_num()] = mine;
#pragma omp barrier
        check(handed[(omp_get_thread_num() + 1) % omp_get_num_threads()] == mine, "barrier");
#pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < 12; ++i) {
#pragma omp ordered
            {
                check(passed == i - 1, "order");
                passed = i;
                in_order += i;
            }
        }
        for (int i = 0; i < 3; ++i) {
#pragma omp single nowait
            {
#pragma omp atomic
                singles += 1;
            }
        }
        omp_set_lock(&lock);
        locked += 1;
        omp_unset_lock(&lock);
#pragma omp critical
        met += 1;
#pragma omp single
        {
            for (int i = 0; i < 10; ++i) {
#pragma omp task firstprivate(i)
                {
#pragma omp atomic
                    made += i;
                }
            }
#pragma omp taskwait
        }
#pragma omp sections
        {
#pragma omp section
            check(made == 45, "tasks");
#pragma omp section
            check(singles <= 3, "singles");
        }
    }
    check(in_order == 66 && singles == 3 && locked == threads && met == threads, "sums");
    omp_destroy_lock(&lock);
}

/// A region that is given up has all its threads at its end, and the next one is whole.
static void given_up(int threads) {
    long done = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for
        for (int i = 0; i < 1000; ++i) {
#pragma omp atomic
            done += 1;
            if (i == 3) {
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
    }
    check(omp_get_cancellation() ? done >= 1 && done <= 1000 : done == 1000, "cancelled loop");
}

static void inner(int threads) {
    long all = 0;
#pragma omp parallel num_threads(threads) reduction(+ : all)
    {
        long own = 0;
#pragma omp parallel num_threads(3) reduction(+ : own)
        own += omp_get_num_threads() * 100 + omp_get_ancestor_thread_num(1) - omp_get_level();
        all += own;
    }
    const long each = omp_get_max_active_levels() > 1 ? 3 : 1;
    check(all == threads * each * (each * 100 - 2) + each * threads * (threads - 1) / 2,
          "inner teams");
}

/// Threads that have changed how they compute go on so.
static void computes(int threads) {
    const unsigned plain = computing();
#pragma omp parallel num_threads(threads)
    compute_otherwise(plain | 0x8000);
    for (int i = 0; i < 20; ++i) {
#pragma omp parallel num_threads(threads)
        check(computing() == (plain | 0x8000), "how threads compute");
    }
}

int main(int words, char** word) {
    const int threads = omp_get_max_threads();
    const int levels = words > 1 && strcmp(word[1], "levels") == 0;
    long sum = 0;
    for (int round = 0; round < rounds; ++round) {
        queries(threads);
        sum += sweep(round, threads);
        if (round % 3 == 0) constructs(round, threads);
        sum += sweep(round, threads + 1);
        if (round % 4 == 0) given_up(threads);
        if (levels || round % 5 == 0) inner(threads);
        if (round % 10 == 0) queries(threads + 2);
    }
    computes(threads);
    printf("%ld %d\n", sum, wrong);
    return wrong != 0;
}
