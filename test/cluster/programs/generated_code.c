// SPDX-License-Identifier: BSD-3-Clause
// Code that main generates, called by threads of all nodes: in memory mapped so, made so later, in
// a reservation, and changed between regions.
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 4096, ROUNDS = 3 };
typedef int Function(int);

/// A function that adds `number` to its argument.
static void generate(unsigned char* at, int number) {
    const unsigned char code[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};  // lea number(%rdi),%eax; ret
    memcpy(at, code, sizeof code);
    memcpy(at + 2, &number, sizeof number);
}

static void* map(size_t bytes, int protection) {
    return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void) {
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    unsigned char* code[3];
    code[0] = map(BYTES, all);
    code[1] = map(BYTES, PROT_READ | PROT_WRITE);
    unsigned char* const reserved = map((size_t)1 << 30, PROT_NONE);
    code[2] = reserved + ((size_t)1 << 29);
    int wrong = mprotect(code[2], BYTES, all) != 0;
    for (int round = 0; round < ROUNDS; ++round) {
        wrong += mprotect(code[1], BYTES, PROT_READ | PROT_WRITE) != 0;
        for (int i = 0; i < 3; ++i) generate(code[i], 100 * round + i);
        wrong += mprotect(code[1], BYTES, PROT_READ | PROT_EXEC) != 0;
        for (int i = 0; i < 3; ++i) wrong += ((Function*)code[i])(1) != 100 * round + i + 1;
#pragma omp parallel reduction(+ : wrong)
        for (int i = 0; i < 3; ++i) {
            const int thread = omp_get_thread_num();
            wrong += ((Function*)code[i])(thread) != 100 * round + i + thread;
        }
    }
    // A thread's own.
#pragma omp parallel reduction(+ : wrong)
    {
        unsigned char* const own = map(BYTES, PROT_READ | PROT_WRITE);
        generate(own, omp_get_thread_num());
        wrong += mprotect(own, BYTES, PROT_READ | PROT_EXEC) != 0;
        wrong += ((Function*)own)(5) != 5 + omp_get_thread_num();
        munmap(own, BYTES);
    }
    // What was code is memory again.
    munmap(code[0], BYTES);
    int* const data = map(BYTES, PROT_READ | PROT_WRITE);
#pragma omp parallel for
    for (int i = 0; i < BYTES / 4; ++i) data[i] = i;
    for (int i = 0; i < BYTES / 4; ++i) wrong += data[i] != i;
    printf("%d\n", wrong);
    return 0;
}
