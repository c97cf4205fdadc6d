// SPDX-License-Identifier: BSD-3-Clause
// Fibers that go from thread to thread, of all nodes, in the middle of functions that a stack
// protector watches.
#include <stdlib.h>
#include <ucontext.h>

#include "verdict.h"

enum { fibers = 6, steps = 11, stack_bytes = 65536 };

static ucontext_t fiber[fibers], back[64];
static int at[fibers];
static long sum[fibers], done;

static __attribute__((noinline)) void go_on(int f) { swapcontext(&fiber[f], &back[at[f]]); }

static __attribute__((noinline)) void work(int f) {
    volatile char text[200];
    for (int step = 0; step < steps; ++step) {
        for (int i = 0; i < 200; ++i) text[i] = (char)(f + step);
        go_on(f);
        sum[f] += text[step] * 10 + step;
    }
}

static void enter(int f) {
    work(f);
#pragma omp atomic
    ++done;
    for (;;) go_on(f);
}

int main(void) {
    for (int f = 0; f < fibers; ++f) {
        getcontext(&fiber[f]);
        fiber[f].uc_stack.ss_size = stack_bytes;
        fiber[f].uc_stack.ss_sp = malloc(stack_bytes);
        fiber[f].uc_link = NULL;
        makecontext(&fiber[f], (void (*)(void))enter, 1, f);
    }
#pragma omp parallel
    for (int step = 0; step <= steps; ++step) {
        const int me = omp_get_thread_num(), team = omp_get_num_threads();
        for (int f = 0; f < fibers; ++f) {
            if ((f + step) % team != me) continue;
            at[f] = me;
            swapcontext(&back[me], &fiber[f]);
        }
#pragma omp barrier
    }
    long all = 0, wanted = 0;
    for (int f = 0; f < fibers; ++f) {
        all += sum[f];
        for (int step = 0; step < steps; ++step) wanted += (f + step) * 10 + step;
    }
    check_equal("the fibers came to their ends", done, fibers);
    check_equal("with what they had on their stacks", all, wanted);
    return wrong;
}
