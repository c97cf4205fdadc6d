// SPDX-License-Identifier: BSD-3-Clause
// Races of every kind that the report tells apart. Built with -g; race_runs.py knows the lines by
// the comments behind them. Every thread reads a variable before a barrier and writes it behind
// it, so that each node has a copy from before both writes. A node may still learn of the other's
// write before its own (a flush in the background); sixty rounds are enough to see all of them.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int counter[1024];     // line of counter
static int same_value[1024];  // line of same_value
static long disjoint[1024];

/// Until every thread has left the barrier: what one writes before another has left is news to
/// that one, which then writes it in order.
static void let_all_leave(void) {
    const double until = omp_get_wtime() + 1e-3;
    while (omp_get_wtime() < until) {
    }
}

int main(void) {
    int on_stack[2048];
    int* on_heap = malloc(8192);
    int wrong = 0;
    on_heap[0] = 0;
    on_stack[1024] = 0;
#pragma omp parallel num_threads(2) reduction(+ : wrong)
    {
        const int id = omp_get_thread_num();
        for (int round = 0; round < 60; ++round) {
            const int mine = 0x01010101 * (1 + id + 2 * round);
            wrong += counter[512] < 0 || disjoint[id] != round || on_heap[0] < 0 ||
                     on_stack[1024] < 0 || same_value[512] != round * 0x01010101;
#pragma omp barrier
            let_all_leave();
            // What the barrier took away, as it did the block of a stack that is in use, comes now.
            (void)*(volatile int*)&counter[512], (void)*(volatile int*)&same_value[512];
            (void)*(volatile int*)on_heap, (void)*(volatile int*)&on_stack[1024];
            let_all_leave();
            counter[512] = mine;
            same_value[512] = (1 + round) * 0x01010101;
            disjoint[id] = 1 + round;
            on_heap[0] = mine;
            on_stack[1024] = mine;
#pragma omp barrier  // line of the barrier
        }
        // The launcher looks for the frame of on_stack while the region runs.
        for (int i = 0; i < 300; ++i) {
#pragma omp barrier
        }
    }
    const int one_of_both = counter[512] == 0x01010101 * 119 || counter[512] == 0x01010101 * 120;
    printf("%s\n",
           wrong == 0 && one_of_both && disjoint[0] == 60 && disjoint[1] == 60 ? "right" : "wrong");
    free(on_heap);
    return 0;
}
