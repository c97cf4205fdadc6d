// SPDX-License-Identifier: BSD-3-Clause
// Role: what atomics on shared counters cost, with plain writes that they scatter, as where a graph
// is built, and alone. Prints two times and checks both.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { counters = 1 << 14, items = 1 << 18 };

static int check(const long* at, const int* where, const unsigned* key) {
    long wrong = 0;
    for (int i = 0; i < counters; ++i) {
        const long begin = i == 0 ? 0 : at[i - 1];
        for (long j = begin; j < at[i]; ++j) wrong += key[where[j]] != (unsigned)i;
    }
    return wrong != 0 || at[counters - 1] != items;
}

int main(void) {
    long* const at = calloc(counters, sizeof *at);
    int* const where = malloc(items * sizeof *where);
    unsigned* const key = malloc(items * sizeof *key);
    unsigned seed = 1;
    for (int i = 0; i < items; ++i) {
        seed = seed * 1664525u + 1013904223u;
        key[i] = (seed >> 16) % counters;
        if (key[i] + 1 < counters) ++at[key[i] + 1];
    }
    for (int i = 1; i < counters; ++i) at[i] += at[i - 1];

    double begin = omp_get_wtime();
#pragma omp parallel for
    for (int i = 0; i < items; ++i) where[__sync_fetch_and_add(&at[key[i]], 1)] = i;
    printf("scattered %.3f s\n", omp_get_wtime() - begin);
    const int wrong = check(at, where, key);

    long sum = 0;
    for (int i = 0; i < counters; ++i) sum -= at[i];
    begin = omp_get_wtime();
#pragma omp parallel for
    for (int i = 0; i < items; ++i) __sync_fetch_and_add(&at[key[i]], 1);
    printf("alone %.3f s\n", omp_get_wtime() - begin);
    for (int i = 0; i < counters; ++i) sum += at[i];
    puts(wrong || sum != items ? "wrong" : "right");
    return wrong || sum != items;
}
