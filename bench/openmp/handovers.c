// SPDX-License-Identifier: BSD-3-Clause
// Role: what a hand-over from one node to another by a flag costs, with data behind it: two threads
// wait for each other in turns. Prints the median of all round trips, halved, for each way to wait.
// argv: the number of round trips, and the way: flush, exchange, atomic or
// spin.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { trips_max = 1 << 16 };
static double took[trips_max];
// Apart: the data must come because of the flag, not with it.
static struct {
    int value;
    char apart[1 << 16];
} flag, data;

static void wait_by_flush(int value) {
    for (int seen = -1; seen != value;) {
#pragma omp flush
#pragma omp atomic read
        seen = flag.value;
    }
#pragma omp flush
}

static void tell_by_flush(int value) {
#pragma omp flush
#pragma omp atomic write
    flag.value = value;
#pragma omp flush
}

static void wait_by_atomic(int value) {
    for (int seen = -1; seen != value;) {
#pragma omp atomic read seq_cst
        seen = flag.value;
    }
}

static void tell_by_atomic(int value) {
#pragma omp atomic write seq_cst
    flag.value = value;
}

// Nothing that a runtime could hear.
static void wait_by_spin(int value) {
    while (__atomic_load_n(&flag.value, __ATOMIC_ACQUIRE) != value) __builtin_ia32_pause();
}

static void tell_by_spin(int value) { __atomic_store_n(&flag.value, value, __ATOMIC_RELEASE); }

// Read-modify-writes, which a runtime can tell from loads.
static void wait_by_exchange(int value) {
    while (__atomic_fetch_add(&flag.value, 0, __ATOMIC_ACQ_REL) != value) __builtin_ia32_pause();
}

static void tell_by_exchange(int value) {
    __atomic_exchange_n(&flag.value, value, __ATOMIC_ACQ_REL);
}

static const struct {
    const char* name;
    void (*wait)(int);
    void (*tell)(int);
} ways[] = {{"flush", wait_by_flush, tell_by_flush},
            {"exchange", wait_by_exchange, tell_by_exchange},
            {"atomic", wait_by_atomic, tell_by_atomic},
            {"spin", wait_by_spin, tell_by_spin},
            {NULL, NULL, NULL}};

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    const int trips = argc > 2 ? atoi(argv[1]) : 0;
    int way = 0;
    while (ways[way].name != NULL && (argc < 3 || strcmp(argv[2], ways[way].name) != 0)) ++way;
    if (trips < 1 || trips > trips_max || ways[way].name == NULL) {
        fprintf(stderr, "usage: handovers TRIPS flush|exchange|atomic|spin; at most %d trips\n",
                trips_max);
        return 64;
    }
    int old = 0, threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : old, threads)
    {
        const int self = omp_get_thread_num();
        threads = 1;
        for (int trip = 0; trip < trips; ++trip) {
            const double begin = omp_get_wtime();
            // A turn's number says whose it is and what must lie behind it.
            const int turn = 2 * trip + self;
            ways[way].wait(turn);
            old += data.value != turn;
            data.value = turn + 1;
            ways[way].tell(turn + 1);
            if (self == 0) took[trip] = omp_get_wtime() - begin;
        }
    }
    qsort(took, (size_t)trips, sizeof *took, compare);
    printf("%s: %.2f us a hand-over (median of %d round trips, halved), %d saw old data\n",
           ways[way].name, 1e6 / 2 * took[trips / 2], trips, old);
    return old != 0 || threads != 2;
}
