// SPDX-License-Identifier: BSD-3-Clause
// Regions as clang compiles them, and everything in them that is not a loop or a task: arguments in
// any number, one thread, leagues, blocks of one thread, mutual exclusion, flushes. Right for any
// number of threads from 1 to 64.
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "verdict.h"

static int copied = 5;
#pragma omp threadprivate(copied)

static void many_arguments(int threads) {
    long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, sum = 0;
    char text[40] = "text";
    double x = 0.5, y = 0.25;
#pragma omp parallel shared(a, b, c, d, e, f, g, h, i, text, x, y, sum)
    {
        const long mine =
            a + b + c + d + e + f + g + h + i + (long)strlen(text) + (x + y == 0.75 ? 1 : 1000);
#pragma omp critical(sums)
        sum += mine;
    }
    check("13 variables reach every thread", sum == 50L * threads);
#pragma omp parallel
    {
#pragma omp single
        sum = omp_get_num_threads();
    }
    check("no variable but one", sum == threads);
    int value = 11, hits = 0;
#pragma omp parallel firstprivate(value) reduction(+ : hits)
    {
        value += omp_get_thread_num();
        hits += value - omp_get_thread_num() == 11;
    }
    check("firstprivate", hits == threads && value == 11);
}

static void sizes(int threads) {
    int got = 0, level = -1, inner = 0, number = -1;
#pragma omp parallel num_threads(2)
#pragma omp master
    got = omp_get_num_threads();
    check("num_threads", got == 2);
#pragma omp parallel if (threads > 1000)
    {
        got = omp_get_num_threads();
        level = omp_get_level();
        number = omp_get_thread_num();
        // Worksharing in a region of one thread, and a region in that.
#pragma omp for schedule(dynamic)
        for (int k = 0; k < 10; k++) inner += k;
#pragma omp single
        inner += 100;
#pragma omp parallel if (0)
        inner += omp_get_level() * 1000;
    }
    check("if(0)", got == 1 && level == 1 && number == 0 && inner == 2145);
#pragma omp parallel
#pragma omp master
    got = omp_get_num_threads();
    check("as many as before", got == threads);
    omp_set_num_threads(2);
#pragma omp parallel
#pragma omp master
    got = omp_get_num_threads();
    check("omp_set_num_threads", got == 2);
    omp_set_num_threads(threads);
}

static void one_at_a_time(int threads) {
    int by_master = 0, by_masked = 0, by_single = 0, hits = 0, plain = 0, named = 0;
#pragma omp parallel reduction(+ : hits)
    {
#pragma omp master
        by_master++;
#pragma omp barrier
#pragma omp single
        by_single++;
        hits += by_single == 1 && by_master == 1;
#pragma omp single nowait
        by_masked++;
#pragma omp critical
        plain++;
#pragma omp critical(another) hint(omp_sync_hint_contended)
        named++;
    }
    check("master, single and barrier", hits == threads && by_masked == 1);
    check("critical", plain == threads && named == threads);

    double first = 0;
    int second = 0;
    hits = 0;
#pragma omp parallel private(first, second) reduction(+ : hits)
    {
#pragma omp single copyprivate(first, second, copied)
        {
            first = 2.5;
            second = 7;
            copied = 30;
        }
        hits += first == 2.5 && second == 7 && copied == 30;
    }
    check("copyprivate", hits == threads);
    copied = 77;
    hits = 0;
#pragma omp parallel copyin(copied) reduction(+ : hits)
    hits += copied == 77;
    check("copyin", hits == threads);
}

static void locks(int threads) {
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock_with_hint(&lock, omp_sync_hint_none);
    omp_init_nest_lock_with_hint(&nest, omp_sync_hint_uncontended);
    long counted = 0, nested = 0;
#pragma omp parallel
    for (int k = 0; k < 20; k++) {
        omp_set_lock(&lock);
        counted++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        nested++;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    check("locks", counted == 20L * threads && nested == 20L * threads);
}

static void atomics(int threads) {
    int i = 0, most = 0;
    long product = 1;
    unsigned char small = 0;
    float f = 0;
    double d = 0;
    int taken = 0;
#pragma omp parallel
    for (int k = 0; k < 50; k++) {
        int before;
#pragma omp atomic
        i++;
#pragma omp atomic seq_cst
        f += 0.5f;
#pragma omp atomic
        d += 0.25;
#pragma omp atomic
        small ^= 1;
#pragma omp atomic capture
        before = taken++;
        if (before == 7) {
#pragma omp atomic update
            product *= 3;
        }
#pragma omp critical(max)
        if (before > most) most = before;
    }
    const int all = 50 * threads;
    check("atomics", i == all && f == 0.5f * (float)all && d == 0.25 * all && small == (all & 1) &&
                         taken == all && product == 3 && most == all - 1);
}

static void reductions(int threads) {
    long sum = 0, low = 1 << 20, high = -1;
    unsigned bits = 0;
    double product = 1;
    int list[4] = {0, 0, 0, 0}, all = 1;
#pragma omp parallel reduction(+ : sum, list) reduction(min : low) reduction(max : high) \
    reduction(| : bits) reduction(* : product) reduction(&& : all)
    {
        const int mine = omp_get_thread_num();
        sum += mine;
        low = low < mine ? low : mine;
        high = high > mine ? high : mine;
        bits |= 1u << (mine % 32);
        product *= 2;
        list[mine % 4]++;
        all = all && mine >= 0;
    }
    double wanted = 1;
    for (int k = 0; k < threads; k++) wanted *= 2;
    check("reductions of a region", sum == (long)threads * (threads - 1) / 2 && low == 0 &&
                                        high == threads - 1 && product == wanted && all &&
                                        list[0] + list[1] + list[2] + list[3] == threads &&
                                        bits != 0);
}

static void leagues(void) {
    int teams = 0, seen = 0, sum = 0;
#pragma omp teams num_teams(3) reduction(+ : seen) reduction(max : teams)
    {
        teams = omp_get_num_teams();
        seen += 1 + 10 * omp_get_team_num();
    }
    check("teams", teams >= 1 && teams <= 3 && seen > 0);
#pragma omp teams distribute parallel for num_teams(2) reduction(+ : sum)
    for (int k = 0; k < 1000; k++) sum += k;
    check("teams distribute parallel for", sum == 499500);
    sum = 0;
#pragma omp teams reduction(+ : sum)
    {
#pragma omp distribute dist_schedule(static, 7)
        for (int k = 0; k < 100; k++) sum += k;
    }
    check("distribute by chunks", sum == 4950);
}

static void flags(void) {
    int data = 0, flag = 0, seen = -1;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_num_threads() == 1) {
            seen = 42;
        } else if (omp_get_thread_num() == 0) {
            data = 42;
#pragma omp flush(data)
#pragma omp atomic write
            flag = 1;
#pragma omp flush
        } else {
            int now = 0;
            while (!now) {
#pragma omp flush
#pragma omp atomic read
                now = flag;
            }
#pragma omp flush
            seen = data;
        }
    }
    check("flush", seen == 42);
}

int main(void) {
    const int threads = team_size();
    many_arguments(threads);
    sizes(threads);
    one_at_a_time(threads);
    locks(threads);
    atomics(threads);
    reductions(threads);
    leagues();
    flags();
    return wrong;
}
