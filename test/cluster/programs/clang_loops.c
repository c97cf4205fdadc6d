// SPDX-License-Identifier: BSD-3-Clause
// Loops as clang compiles them: by each kind of variable, schedule and direction; combined, nested,
// ordered, waiting for each other. Right for any number of threads from 1 to 64.
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "verdict.h"

enum { count = 500 };
static int hits[count];

static int each_once(void) {
    int right = 1;
    for (int i = 0; i < count; i++) right &= hits[i] == 1;
    memset(hits, 0, sizeof hits);
    return right;
}

#define LOOP(what, type, clause)                                           \
    _Pragma(clause) for (type i = 0; i < count; i++) hits[i]++;            \
    check(what " up", each_once());                                        \
    _Pragma(clause) for (type i = count; i > 0; i--) hits[i - 1]++;        \
    check(what " down", each_once());                                      \
    _Pragma(clause) for (type i = 0; i < 3 * count; i += 3) hits[i / 3]++; \
    check(what " by 3", each_once())

#define KINDS(schedule, clause)                      \
    LOOP(schedule " of int", int, clause);           \
    LOOP(schedule " of unsigned", unsigned, clause); \
    LOOP(schedule " of long", long, clause);         \
    LOOP(schedule " of unsigned long", unsigned long, clause)

static void schedules(void) {
    KINDS("static", "omp parallel for schedule(static)");
    KINDS("static,7", "omp parallel for schedule(static, 7)");
    KINDS("static,1000", "omp parallel for schedule(static, 1000)");
    KINDS("dynamic", "omp parallel for schedule(dynamic)");
    KINDS("dynamic,9", "omp parallel for schedule(monotonic : dynamic, 9)");
    KINDS("guided", "omp parallel for schedule(guided)");
    KINDS("runtime", "omp parallel for schedule(runtime)");
    KINDS("auto", "omp parallel for schedule(auto)");
    KINDS("simd", "omp parallel for simd");
}

static void who_gets_what(int threads) {
    int owner[64], same = 1;
    static int place[count];
#pragma omp parallel for schedule(static)
    for (int i = 0; i < count; i++) place[i] = omp_get_thread_num();
    // As each thread's block is whole, its first iteration and length tell all.
    memset(owner, 0, sizeof owner);
    for (int i = 0; i < count; i++) owner[place[i] % 64]++;
    for (int i = 1; i < count; i++)
        same &= place[i] == place[i - 1] || place[i] == place[i - 1] + 1;
    for (int t = 0; t < threads && t < 64; t++)
        same &= owner[t] == count / threads + (t < count % threads);
    check("blocks", same);
#pragma omp parallel for schedule(static, 3)
    for (int i = 0; i < count; i++) place[i] = omp_get_thread_num();
    same = 1;
    for (int i = 0; i < count; i++) same &= place[i] == i / 3 % threads;
    check("chunks", same);
}

static void edges(void) {
    long seen = 0, last = 0;
#pragma omp parallel for schedule(monotonic : dynamic, 2) reduction(+ : seen) lastprivate(last)
    for (long i = LONG_MAX - 40; i < LONG_MAX - 30; i++) {
        seen++;
        last = i;
    }
    check("near the largest number", seen == 10 && last == LONG_MAX - 31);
    seen = 0;
#pragma omp parallel for schedule(guided) reduction(+ : seen)
    for (int i = INT_MIN; i < INT_MIN + 11; i++) seen++;
    check("near the smallest number", seen == 11);
    seen = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : seen)
    for (unsigned i = UINT_MAX - 5; i > UINT_MAX - 9; i--) seen++;
    check("a large unsigned number", seen == 4);
    seen = 0;
#pragma omp parallel for schedule(static) reduction(+ : seen)
    for (int i = 10; i < 10; i++) seen++;
#pragma omp parallel for schedule(dynamic) reduction(+ : seen)
    for (int i = 10; i < 10; i++) seen++;
    check("no iteration", seen == 0);
    int at_end = -1, of_static = -1, of_guided = -1;
#pragma omp parallel
    {
#pragma omp for lastprivate(of_static) nowait
        for (int i = 0; i < 5; i++) of_static = i;
#pragma omp for schedule(static, 2) lastprivate(at_end)
        for (int i = 0; i < 37; i++) at_end = i;
#pragma omp for schedule(guided) lastprivate(of_guided)
        for (int i = 0; i < 41; i++) of_guided = i;
    }
    check("lastprivate", at_end == 36 && of_static == 4 && of_guided == 40);
}

static void shapes(void) {
    int sections = 0, before = 0, in_order = 1;
    long sum = 0;
#pragma omp parallel
    {
#pragma omp sections reduction(+ : sections)
        {
#pragma omp section
            sections += 1;
#pragma omp section
            sections += 10;
#pragma omp section
            sections += 100;
        }
#pragma omp for collapse(2) reduction(+ : sum) schedule(dynamic, 3)
        for (int i = 0; i < 20; i++)
            for (int j = 0; j < 25; j++) {
                hits[i * 25 + j]++;
                sum += i * j;
            }
#pragma omp for ordered schedule(dynamic, 2)
        for (int i = 0; i < 60; i++) {
            if (i % 3 == 0) continue;
#pragma omp ordered
            {
                in_order &= i > before;
                before = i;
            }
        }
#pragma omp for ordered
        for (int i = 60; i < 120; i++) {
#pragma omp ordered
            {
                in_order &= i > before;
                before = i;
            }
        }
    }
    check("sections", sections == 111);
    check("collapse", each_once() && sum == 190L * 300);
    check("ordered", in_order && before == 119);
}

enum { rows = 24, columns = 18 };
static long table[rows + 1][columns + 2];

static long along_one_thread(void) {
    memset(table, 0, sizeof table);
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++)
            table[i][j] =
                (table[i - 1][j] + table[i][j - 1] + table[i - 1][j + 1] + i * j) % 1000003;
    long sum = 0;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) sum += table[i][j] * (i + 2 * j);
    memset(table, 0, sizeof table);
    return sum;
}

static long sum_of_table(void) {
    long sum = 0;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) sum += table[i][j] * (i + 2 * j);
    memset(table, 0, sizeof table);
    return sum;
}

// No iteration waits for a column behind the last one: LLVM's runtime would wait for ever.
// clang-format off
#define WAVE(clauses)                                                                            \
    _Pragma(clauses) for (int i = 1; i <= rows; i++) for (int j = 1; j <= columns; j++) {        \
        _Pragma("omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)")                   \
        if (j < columns) {                                                                       \
            _Pragma("omp ordered depend(sink : i - 1, j + 1)")                                   \
        }                                                                                        \
        table[i][j] =                                                                            \
            (table[i - 1][j] + table[i][j - 1] + table[i - 1][j + 1] + i * j) % 1000003;         \
        _Pragma("omp ordered depend(source)")                                                    \
    }
// clang-format on

static void waiting(void) {
    const long wanted = along_one_thread();
    WAVE("omp parallel for ordered(2)")
    check("doacross", sum_of_table() == wanted);
    WAVE("omp parallel for ordered(2) schedule(static, 2)")
    check("doacross static,2", sum_of_table() == wanted);
    WAVE("omp parallel for ordered(2) schedule(dynamic)")
    check("doacross dynamic", sum_of_table() == wanted);
    WAVE("omp parallel for ordered(2) schedule(runtime)")
    check("doacross runtime", sum_of_table() == wanted);
    WAVE("omp parallel for collapse(2) ordered(2)")
    check("doacross collapsed", sum_of_table() == wanted);
    WAVE("omp parallel for collapse(2) ordered(2) schedule(guided, 2)")
    check("doacross collapsed guided", sum_of_table() == wanted);
    long along[60];
    along[0] = 1;
#pragma omp parallel for ordered(1) schedule(dynamic, 4)
    for (int i = 58; i >= 0; i -= 2) {
#pragma omp ordered depend(sink : i + 2)
        along[i] = i == 58 ? 3 : along[i + 2] * 2 % 1009;
#pragma omp ordered depend(source)
    }
    long straight = 3;
    for (int i = 56; i >= 0; i -= 2) straight = straight * 2 % 1009;
    check("doacross downwards", along[0] == straight);
}

int main(void) {
    const int threads = team_size();
    schedules();
    who_gets_what(threads);
    edges();
    shapes();
    waiting();
    return wrong;
}
