// SPDX-License-Identifier: BSD-3-Clause
// As many threads as there are nodes: what each writes all see behind a barrier, whichever way the
// news went. Prints how many processes took part, and whether all was right.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 6, THREADS_MAX = 1024 };

static long written[THREADS_MAX];
static int processes[THREADS_MAX];

static int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

/// The kernel's number: getpid() is node 0's everywhere.
static int process(void) {
    char text[32] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 ? atoi(text) : -1;
}

int main(void) {
    const int threads = omp_get_max_threads();
    long wrong = 0, sum = 0, chunks = 0, guarded = 0;
    for (int round = 1; round <= ROUNDS; ++round) {
        // What main writes before a region its threads see.
        long from_main = round * 1000;
#pragma omp parallel reduction(+ : wrong, sum)
        {
            const int thread = omp_get_thread_num();
            processes[thread] = process();
            written[thread] = from_main + thread;
#pragma omp barrier
            for (int other = 0; other < threads; ++other)
                wrong += written[other] != round * 1000 + other;
            sum += thread + 1;
#pragma omp critical
            ++guarded;
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 2 * threads; ++i) {
#pragma omp atomic
                ++chunks;
            }
        }
        // What the threads have written main sees behind it.
        for (int other = 0; other < threads; ++other)
            wrong += written[other] != round * 1000 + other;
    }
    const long expected = (long)ROUNDS * threads * (threads + 1) / 2;
    wrong += sum != expected;
    wrong += chunks != 2l * ROUNDS * threads;
    wrong += guarded != (long)ROUNDS * threads;
    qsort(processes, threads, sizeof *processes, by_value);
    int distinct = threads > 0;
    for (int i = 1; i < threads; ++i) distinct += processes[i] != processes[i - 1];
    printf("%d threads of %d processes: %s\n", threads, distinct, wrong == 0 ? "right" : "wrong");
    return wrong != 0;
}
