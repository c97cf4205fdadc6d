// SPDX-License-Identifier: BSD-3-Clause
// Role: both threads of a node lose a `single nowait`, come to a lock behind it at the same time
// and ask for its stores: one asks, the other waits for that one, and asks itself where it has lost
// a later single.
#include <omp.h>
#include <stdio.h>

enum { rounds = 400 };

static long stored, seen, in_order;
static omp_lock_t lock;

int main(void) {
    omp_init_lock(&lock);
#pragma omp parallel
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < 3; ++i) {
#pragma omp single nowait
            {
                omp_set_lock(&lock);
                stored += i + 1;
                omp_unset_lock(&lock);
            }
        }
        omp_set_lock(&lock);
        seen += 1;
        omp_unset_lock(&lock);
#pragma omp barrier
#pragma omp single
        in_order += stored == 6L * (round + 1) && seen == (long)omp_get_num_threads() * (round + 1);
    }
    omp_destroy_lock(&lock);
    printf("%ld %ld %ld\n", stored, seen, in_order);
    return 0;
}
