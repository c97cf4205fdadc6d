// SPDX-License-Identifier: BSD-3-Clause
// Output of one region, ordered by barriers and ordered blocks: as it was printed, whatever process
// it was printed in and whether its lines were complete.
#include <omp.h>
#include <stdio.h>

int main(void) {
    const int threads = omp_get_max_threads();
#pragma omp parallel
    for (int turn = 0; turn < 3 * threads; ++turn) {
        if (turn % threads == omp_get_thread_num()) printf("turn %d,", turn);
#pragma omp barrier
        if (turn % threads == omp_get_thread_num()) printf(" behind the barrier\n");
#pragma omp barrier
    }
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 20; ++i) {
#pragma omp ordered
        printf("%d ", i);
    }
    printf("\nend\n");
    return 0;
}
