// SPDX-License-Identifier: BSD-3-Clause
// Functions that hiroba calls and whose last act is a call: optimized, it is a jump, and libc's
// function is reached with hiroba as its caller. It is the program's call all the same.
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { bytes = 1 << 16 };

static char* block;
static int ends[2];
static volatile long got;

static void* allocate(void* result) {
    (void)result;
    return malloc(bytes);
}

static void on_signal(int number) {
    (void)number;
    got = write(ends[1], block, bytes / 2);
}

static void take_in(char* buffer) { got = read(ends[0], buffer, bytes / 2); }

int main(void) {
    pthread_t thread;
    void* made = NULL;
    if (pipe(ends) != 0) return 2;
    // The thread's memory is the program's: all nodes see it.
    pthread_create(&thread, NULL, allocate, NULL);
    pthread_join(thread, &made);
    block = made;
#pragma omp parallel for schedule(static, 64)
    for (int i = 0; i < bytes; ++i) block[i] = (char)(i * 5);
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static, 64)
    for (int i = 0; i < bytes; ++i) sum += block[bytes - 1 - i] * (i & 15);
    printf("sum %ld\n", sum);

    signal(SIGUSR2, on_signal);
    kill(getpid(), SIGUSR2);
    while (got == 0) usleep(1000);
    printf("handler wrote %ld\n", got);
    char* const copy = calloc(1, bytes);
    take_in(copy);
    printf("read %ld, equal %d\n", got, !memcmp(copy, block, bytes / 2));

    // Freed by the last act of a region's function, each by one thread.
    char** blocks = malloc(64 * sizeof *blocks);
    for (int i = 0; i < 64; ++i) blocks[i] = malloc(100);
#pragma omp parallel
    free(blocks[omp_get_thread_num()]);
    puts("freed");
    return 0;
}
