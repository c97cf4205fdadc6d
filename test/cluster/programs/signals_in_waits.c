// SPDX-License-Identifier: BSD-3-Clause
// Handlers run while main stands at a join, a barrier, a critical section or a lock that only their
// doing ends: other threads spin until the handler has run.
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t rung;
static volatile long trail[4096];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void on_alarm(int number) {
    for (int i = 0; i < 4096; ++i) trail[i] += number;
    rung = 1;
}

static void ring_in(int ms) {
    rung = 0;
    struct itimerval once = {{0, 0}, {0, ms * 1000}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void until_rung(void) {
    while (!rung) usleep(500);
}

int main(void) {
    signal(SIGALRM, on_alarm);
    omp_lock_t lock;
    omp_init_lock(&lock);
    int kinds = 0;
    for (int kind = 0; kind < 5; ++kind) {
        volatile int taken = 0;
        rung = 0;
#pragma omp parallel
        {
            const int thread = omp_get_thread_num(), last = omp_get_num_threads() - 1;
            if (kind >= 2 && thread == last) {
                if (kind == 2) omp_set_lock(&lock);
                if (kind == 3) pthread_mutex_lock(&mutex);
            }
#pragma omp barrier
            if (thread == 0) ring_in(60);
            if (kind == 4) {
                // The last thread holds the section; main comes when it is taken.
                if (thread == last) {
#pragma omp critical
                    {
                        taken = 1;
                        until_rung();
                    }
                } else if (thread == 0) {
                    while (!taken && !rung) usleep(500);
#pragma omp critical
                    taken = 2;
                }
            } else if (thread == 0) {
                if (kind == 1) {
#pragma omp barrier
                }
                if (kind == 2) omp_set_lock(&lock), omp_unset_lock(&lock);
                if (kind == 3) pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex);
            } else {
                until_rung();
                if (kind == 1) {
#pragma omp barrier
                }
                if (kind == 2 && thread == last) omp_unset_lock(&lock);
                if (kind == 3 && thread == last) pthread_mutex_unlock(&mutex);
            }
        }
        kinds += rung == 1;
    }
    long wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
    for (int i = 0; i < 4096; ++i) wrong += trail[i] != 5 * SIGALRM;
    printf("kinds %d, wrong %ld\n", kinds, wrong);
    return 0;
}
