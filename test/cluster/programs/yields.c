// SPDX-License-Identifier: BSD-3-Clause
// Two threads hand panels to each other by volatile words, without a flush, and yield or sleep
// while they wait, as OpenBLAS does.
#include <sched.h>
#include <time.h>

#include "verdict.h"

enum { rounds = 60, words = 4096 };

static struct { _Alignas(64) volatile long value; } turn[2];
static double panel[2][words];

static void wait_a_little(int sleeps) {
    const struct timespec little = {0, 20000};
    if (sleeps)
        nanosleep(&little, NULL);
    else
        sched_yield();
}

static void hand_over(const char* how, int sleeps) {
    double sum = 0, wanted = 0;
    turn[0].value = turn[1].value = 0;
#pragma omp parallel reduction(+ : sum)
    if (omp_get_thread_num() < 2) {
        const int me = omp_get_thread_num();
        for (int round = 1; round <= rounds; ++round) {
            for (int i = 0; i < words; ++i) panel[me][i] = round + i % 3;
            __sync_synchronize();
            turn[me].value = 2 * round - 1;
            while (turn[!me].value < 2 * round - 1) wait_a_little(sleeps);
            __sync_synchronize();
            for (int i = 0; i < words; i += 64) sum += panel[!me][i];
            __sync_synchronize();
            turn[me].value = 2 * round;
            while (turn[!me].value < 2 * round) wait_a_little(sleeps);
            __sync_synchronize();
        }
    }
    for (int round = 1; round <= rounds; ++round)
        for (int i = 0; i < words; i += 64) wanted += 2.0 * (round + i % 3);
    check_equal(how, (long)sum, (long)wanted);
}

int main(void) {
    hand_over("by yields", 0);
    hand_over("by naps", 1);
    return wrong;
}
