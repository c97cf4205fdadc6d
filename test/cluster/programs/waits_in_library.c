// SPDX-License-Identifier: BSD-3-Clause
// A wait as newer C++ libraries make it: for a word of the program's, but asleep on one of the
// library's own, which each node has.
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

void wait_while_zero(long* word);
void tell_all(void);

static long turn[64], data[64], arrived;

int main(void) {
    int wrong = 0;
    long seen = 0;
#pragma omp parallel reduction(+ : wrong, seen)
    {
        const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
        if (thread == 0) {
            while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < threads) usleep(1000);
            usleep(20000);  // the others sleep by now
        }
        if (thread > 0) wait_while_zero(&turn[thread]);
        if (thread > 0) wrong += data[thread - 1] != thread;
        data[thread] = thread + 1;
        if (thread + 1 < threads) __atomic_store_n(&turn[thread + 1], 1, __ATOMIC_SEQ_CST);
        tell_all();
        seen += data[thread];
    }
    printf("seen %s, wrong %d\n", seen > 0 ? "all" : "none", wrong);
    return wrong;
}
