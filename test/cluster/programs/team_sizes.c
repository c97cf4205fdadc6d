// SPDX-License-Identifier: BSD-3-Clause
// Teams of other sizes than the job was started with, smaller and larger: splits made by hand need
// every thread that was asked for.
#include <omp.h>
#include <stdio.h>

enum { most = 12, cells = 1200 };
static int table[cells];
static int kept;
#pragma omp threadprivate(kept)

static int split_by_hand(int threads) {
    for (int i = 0; i < cells; ++i) table[i] = 0;
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num(), part = cells / threads;
        for (int i = me * part; i < (me == threads - 1 ? cells : (me + 1) * part); ++i)
            table[i] = i;
#pragma omp barrier
        // What a neighbour has written.
        const int i = ((me + 1) % threads) * part;
        if (table[i] != i) table[i] = -1;
    }
    int wrong = 0;
    for (int i = 0; i < cells; ++i) wrong += table[i] != i;
    return wrong;
}

int main(void) {
    const int at_first = omp_get_max_threads();
    omp_set_dynamic(0);
    for (int threads = 1; threads <= most; ++threads) {
        int seen[most] = {0}, sizes[most] = {0}, single = 0, sum = 0, last = -1;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
        {
            seen[omp_get_thread_num()] += 1;
            sizes[omp_get_thread_num()] = omp_get_num_threads();
#pragma omp single
            single += 1;
#pragma omp for schedule(dynamic, 3)
            for (int i = 0; i < 100; ++i) sum += i;
#pragma omp for ordered
            for (int i = 0; i < 8; ++i) {
#pragma omp ordered
                last = i;
            }
#pragma omp masked filter(omp_get_num_threads() - 1)
            last += 100 * omp_get_thread_num();
        }
        int all = 0, equal = 0;
        for (int t = 0; t < most; ++t) {
            all += seen[t] == (t < threads);
            equal += sizes[t] == (t < threads ? threads : 0);
        }
        printf("%d: %d %d %d %d %d, by hand %d\n", threads, all, equal, single, sum, last,
               split_by_hand(threads));
    }
    // As often as the team keeps its size, a thread keeps its own variables.
    for (int round = 0; round < 3; ++round) {
#pragma omp parallel num_threads(most)
        kept += omp_get_thread_num();
    }
    int sum = 0;
#pragma omp parallel num_threads(most) reduction(+ : sum)
    sum += kept == 3 * omp_get_thread_num();
    printf("%d keep their own\n", sum);

    omp_set_num_threads(5);
    int of_set = 0;
#pragma omp parallel
#pragma omp single
    of_set = omp_get_num_threads();
    printf("%d %d\n", of_set, omp_get_max_threads());
    omp_set_num_threads(at_first);
    int again = 0;
#pragma omp parallel reduction(+ : again)
    again += 1;
    printf("%d\n", again == at_first);
}
