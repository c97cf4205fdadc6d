// SPDX-License-Identifier: BSD-3-Clause
// A signal handler of main runs while main waits at a barrier, and goes on after the others have
// passed it. It reads what they wrote in front of that barrier, on pages that main has not touched
// before.
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

enum { page = 4096, pages = 16 };
static volatile int* written;
static volatile sig_atomic_t handled, sum;

static void on_alarm(int number) {
    (void)number;
    struct timespec left = {1, 200000000};
    while (nanosleep(&left, &left) != 0) {
    }
    for (int i = 0; i < pages; ++i) sum += written[i * (page / (int)sizeof(int))];
    handled = 1;
}

int main(void) {
    written = aligned_alloc(page, pages * page);
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0) {
            const struct itimerval soon = {{0, 0}, {0, 200000}};
            setitimer(ITIMER_REAL, &soon, NULL);
        } else {
            const struct timespec later = {0, 700000000};
            nanosleep(&later, NULL);
        }
        if (omp_get_thread_num() == omp_get_num_threads() - 1)
            for (int i = 0; i < pages; ++i) written[i * (page / (int)sizeof(int))] = i + 1;
#pragma omp barrier
    }
    // On a busy machine main may come to the barrier last, and the alarm after it.
    const struct timespec moment = {0, 1000000};
    while (!handled) nanosleep(&moment, NULL);
    const int all = pages * (pages + 1) / 2;
    printf("handled %d, all or nothing %d\n", (int)handled, sum == 0 || sum == all);
    return 0;
}
