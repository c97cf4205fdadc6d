// SPDX-License-Identifier: BSD-3-Clause
// A signal handler of main runs while main waits at a barrier, and goes on after the others have
// passed it: a pipe tells it so. It reads what they wrote in front of that barrier, on pages that
// main has not touched before.
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { page = 4096, pages = 16 };
static volatile int* written;
static int passed[2];
static volatile sig_atomic_t handled, sum;

static void on_alarm(int number) {
    (void)number;
    char byte;
    if (read(passed[0], &byte, 1) != 1) return;
    for (int i = 0; i < pages; ++i) sum += written[i * (page / (int)sizeof(int))];
    handled = 1;
}

int main(void) {
    written = aligned_alloc(page, pages * page);
    if (pipe(passed) != 0) return 1;
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    int threads = 0;
#pragma omp parallel
    {
#pragma omp single
        threads = omp_get_num_threads();
        if (omp_get_thread_num() == 0) {
            const struct itimerval soon = {{0, 0}, {0, 300000}};
            setitimer(ITIMER_REAL, &soon, NULL);
        } else {
            const struct timespec later = {1, 0};
            nanosleep(&later, NULL);
        }
        if (omp_get_thread_num() == omp_get_num_threads() - 1)
            for (int i = 0; i < pages; ++i) written[i * (page / (int)sizeof(int))] = i + 1;
#pragma omp barrier
        if (omp_get_thread_num() == omp_get_num_threads() - 1) {
            if (write(passed[1], "p", 1) != 1) abort();
        }
#pragma omp barrier
    }
    printf("handled %d, sum %d\n", (int)handled, threads > 1 ? (int)sum : pages * (pages + 1) / 2);
    return 0;
}
