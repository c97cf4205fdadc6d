// SPDX-License-Identifier: BSD-3-Clause
// Role: what regions and barriers cost whose threads share memory: pages of their own, words of one
// page, a page that a neighbour reads, pages that one thread writes and all read.
#include <stddef.h>

#include "tools/perf/openmp/program/rows.h"

enum { PAGES_READ = 64, LINE_LONGS = 8 };

static long one[PAGE_LONGS] __attribute__((aligned(4096)));
static long written[PAGES_READ * PAGE_LONGS] __attribute__((aligned(4096)));

/// Words a line apart, as far as the page has room.
static long* word_of(int thread) {
    const int apart = PAGE_LONGS / threads;
    return &one[thread * (apart < LINE_LONGS ? apart : LINE_LONGS)];
}

static long own_page(long count) {
    for (long i = 0; i < count; ++i) {
#pragma omp parallel
        {
            long* const mine = page_of(0, omp_get_thread_num());
            if (i > 0) expect((double)*mine, (double)(run_base + i - 1));
            *mine = run_base + i;
            ++account.executed;
        }
    }
    return count * threads;
}
static void verify_own_page(long count) {
    for (int t = 0; t < threads; ++t)
        expect((double)*page_of(0, t), (double)(run_base + count - 1));
}
static long one_page(long count) {
    for (long i = 0; i < count; ++i) {
#pragma omp parallel
        {
            long* const mine = word_of(omp_get_thread_num());
            if (i > 0) expect((double)*mine, (double)(run_base + i - 1));
            *mine = run_base + i;
            ++account.executed;
        }
    }
    return count * threads;
}
static void verify_one_page(long count) {
    for (int t = 0; t < threads; ++t) expect((double)*word_of(t), (double)(run_base + count - 1));
}
static long neighbour(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        const int thread = omp_get_thread_num();
        *page_of(0, thread) = run_base + i;
#pragma omp barrier
        expect((double)*page_of(0, neighbour_of(thread)), (double)(run_base + i));
        ++account.executed;
#pragma omp barrier
    }
    return count * threads;
}
static long serial_write(long count) {
    for (long i = 0; i < count; ++i) {
        for (int page = 0; page < PAGES_READ; ++page)
            written[page * PAGE_LONGS] = run_base + i + page;
#pragma omp parallel
        {
            for (int page = 0; page < PAGES_READ; ++page)
                expect((double)written[page * PAGE_LONGS], (double)(run_base + i + page));
            ++account.executed;
        }
    }
    return count * threads;
}

const struct row memory_rows[] = {
    {"parallel, own page each", own_page, verify_own_page, EVERYONE},
    {"parallel, all one page", one_page, verify_one_page, EVERYONE},
    {"write, barrier, read neighbour's, barrier", neighbour, NULL, EVERYONE},
    {"serial write, all read 64 pages", serial_write, NULL, EVERYONE},
    {NULL, NULL, NULL, 0},
};
