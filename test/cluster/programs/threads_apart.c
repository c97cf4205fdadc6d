// SPDX-License-Identifier: BSD-3-Clause
// A thread of one number is the same in each region, as far as it can tell by asking who it is.
#include <omp.h>
#include <pthread.h>
#include <stdio.h>

enum { rounds = 50 };
static pthread_t known[64];

static int count(int round) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    {
        const int me = omp_get_thread_num();
        if (round == 0) known[me] = pthread_self();
        wrong += !pthread_equal(known[me], pthread_self());
    }
    return wrong;
}

int main(void) {
    int wrong = 0;
    for (int round = 0; round < rounds; ++round) wrong += count(round);
    printf("%d\n", wrong);
    return wrong;
}
