// SPDX-License-Identifier: BSD-3-Clause
// Output of main and of every thread comes in the order of the regions, piped or not.
#include <omp.h>
#include <stdio.h>

int main(void) {
    const int threads = omp_get_max_threads();
    printf("begin with %d threads", threads);  // no newline: still in stdout's buffer at the fork
    for (int turn = 0; turn < 3 * threads; ++turn) {
#pragma omp parallel
        {
            if (omp_get_thread_num() == turn % threads) printf(" [thread %d", turn % threads);
#pragma omp barrier
            if (omp_get_thread_num() == turn % threads) printf(" again]\n");
        }
        printf("after region %d", turn);
    }
    printf("\nend\n");
    return 0;
}
