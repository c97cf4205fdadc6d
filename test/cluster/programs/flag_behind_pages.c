// SPDX-License-Identifier: BSD-3-Clause
// One thread writes flags and flushes nothing; the other flushes until it sees them, as the
// pipelines of LU do. First without end, each flag behind a page: whoever sees the flag must find
// what came before it. Then one flag at a time, with the writer asleep in a barrier: who waits for
// the flag must not have to wait for a clock.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { pages = 48, words = 512, writes = 20000000, handovers = 2000 };

int main(void) {
    volatile long* data = aligned_alloc(4096, (pages + 1) * words * sizeof(long));
    volatile long* flag = data + pages * words;  // A release looks at it last.
    long wrong = 0, seen = 0;
    for (long i = 0; i <= pages * words; ++i) data[i] = 0;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            for (long i = 1; i <= writes; ++i) {
                data[i % pages * words] = i;
                *flag = i;
            }
        } else {
            for (long now = 0; now < writes;) {
#pragma omp flush
                now = *flag;
                for (long i = now > pages ? now - pages + 1 : 1; i <= now; ++i)
                    wrong += data[i % pages * words] < i;
                ++seen;
            }
        }
#pragma omp barrier
        for (long i = 1; i <= handovers; ++i) {
            if (omp_get_thread_num() == 0) {
                *flag = -i;
            } else {
                while (*flag != -i) {
#pragma omp flush
                }
            }
#pragma omp barrier
        }
    }
    printf("%ld wrong, %s\n", wrong, seen > 0 ? "seen" : "never seen");
    return 0;
}
