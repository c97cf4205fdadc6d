// SPDX-License-Identifier: BSD-3-Clause
// A timer fires two thousand times a second while main is in barriers, locks, atomics, faults and
// allocation; its handler touches shared memory that the other threads write. No hang, no loss.
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { page = 4096, pages = 64 };
static volatile long* shared;
static volatile long handled;
static volatile sig_atomic_t strange;

static void on_alarm(int number) {
    (void)number;
    // The first word of a page is written by its thread, the second by this handler alone.
    volatile long* const one = shared + (handled % pages) * (page / (long)sizeof(long));
    if (one[0] < 0) strange = 1;
    one[1] += 1;
    handled += 1;
}

int main(void) {
    shared = aligned_alloc(page, pages * page);
    memset((void*)shared, 0, pages * page);
    struct sigaction action = {.sa_handler = on_alarm};
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, NULL);

    long rounds = 0, atomics = 0, criticals = 0, size = 0;
    while (handled < 400 || rounds < 50) {
#pragma omp parallel
        {
#pragma omp single
            size = omp_get_num_threads();
#pragma omp for schedule(dynamic, 4)
            for (int i = 0; i < pages; ++i) shared[i * (page / (long)sizeof(long))] += 1;
#pragma omp atomic
            atomics += 1;
#pragma omp critical
            criticals += 1;
            free(strcpy(malloc(100), "mine"));
#pragma omp barrier
        }
        ++rounds;
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    long by_threads = 0, by_handler = 0;
    for (int i = 0; i < pages; ++i) {
        by_threads += shared[i * (page / (long)sizeof(long))] == rounds;
        by_handler += shared[i * (page / (long)sizeof(long)) + 1];
    }
    printf("pages %ld, handled %d, atomics %d, criticals %d, strange %d\n", by_threads,
           by_handler == handled, atomics == rounds * size, criticals == rounds * size,
           (int)strange);
    return 0;
}
