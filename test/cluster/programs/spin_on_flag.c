// SPDX-License-Identifier: BSD-3-Clause
// A thread waits for another by relaxed atomic reads alone: nothing in its loop can be seen by the
// runtime, so writes must reach it without a call.
#include <omp.h>
#include <stdio.h>

int main(void) {
    static int turn = 0;
    int rounds = 0;
#pragma omp parallel shared(rounds)
    {
        const int threads = omp_get_num_threads();
        const int self = omp_get_thread_num();
        for (int round = 0; round < 3; ++round) {
            int seen;
            do {
#pragma omp atomic read relaxed
                seen = turn;
            } while (seen != round * threads + self);
#pragma omp atomic
            rounds += self + 1;
#pragma omp atomic write relaxed
            turn = round * threads + self + 1;
        }
    }
    printf("turn %d rounds %d\n", turn, rounds);
    return 0;
}
