// SPDX-License-Identifier: BSD-3-Clause
// Two locks taken one after the other, one of them a spin lock of atomics, and a counter behind
// each: all in one page, or each in one of its own.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { regions = 12, rounds = 50, apart = 65536 };

static char* room;

static void spin(int* word) {
    while (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE) != 0) {
    }
}
static void open_again(int* word) { __atomic_exchange_n(word, 0, __ATOMIC_RELEASE); }

static int count(size_t step, int both_spin) {
    long *const first = (long*)(room + step), *const second = (long*)(room + 2 * step);
    int *const word = (int*)(room + 3 * step), *const other = (int*)(room + 4 * step);
    int wrong = 0;
    for (int region = 0; region < regions; ++region) {
        int threads = 0;
        *first = *second = 0;
#pragma omp parallel reduction(+ : threads)
        {
            threads = 1;
            for (int i = 0; i < rounds; ++i) {
                if (both_spin) {
                    spin(other);
                    ++*first;
                    open_again(other);
                } else {
#pragma omp critical
                    ++*first;
                }
                spin(word);
                ++*second;
                open_again(word);
            }
        }
        wrong += *first != (long)rounds * threads || *second != (long)rounds * threads;
    }
    return wrong;
}

int main(void) {
    room = calloc(5, apart);
    printf("in one page: %d %d wrong\n", count(8, 0), count(8, 1));
    printf("apart: %d %d wrong\n", count(apart, 0), count(apart, 1));
    return 0;
}
