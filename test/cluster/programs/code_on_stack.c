// SPDX-License-Identifier: BSD-3-Clause
// Code on the stack: nested functions of gcc, called through pointers by the thread whose stack it
// is, by the threads of regions on all nodes, and by a thread that the program makes.
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int apply(int (*function)(int), int x) { return function(x); }

static void* run(void* result) {
    int base = 30;
    int add(int x) { return x + base; }
    *(int*)result = apply(add, 1);
    int sum = 0;
    // On other nodes, too.
#pragma omp parallel reduction(+ : sum)
    sum += apply(add, 10);
    *(int*)result += sum;
    return NULL;
}

static int twice_plus(int mine, int x) {
    int twice(int y) { return 2 * y + mine; }
    return apply(twice, x);
}

static int deep(int level) {
    char filled[4096];
    memset(filled, level, sizeof filled);
    int add(int x) { return x + filled[7]; }
    return level == 0 ? apply(add, 0) : apply(add, 0) + deep(level - 1);
}

int main(void) {
    int base = 7, rounds = 0;
    int add(int x) { return x + base; }
    printf("%d\n", apply(add, 1));
    for (; rounds < 20; ++rounds) {
        int sum = 0;
        base = rounds;
#pragma omp parallel reduction(+ : sum)
        {
            sum += twice_plus(omp_get_thread_num(), rounds);
            // The code lies on the stack of the initial thread.
            sum += apply(add, 100);
        }
        printf("%d ", sum);
    }
    int deepest = 0;
#pragma omp parallel reduction(+ : deepest)
    deepest += deep(40);
    printf("\n%d\n", deepest);
    pthread_t thread;
    int result = 0;
    pthread_create(&thread, NULL, run, &result);
    pthread_join(thread, NULL);
    printf("%d\n", result);
}
