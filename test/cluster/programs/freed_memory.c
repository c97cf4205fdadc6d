// SPDX-License-Identifier: BSD-3-Clause
// Memory that comes and goes: every round takes a large block anew, all threads write and read all
// of it, and it is freed: by main, or by another thread. The blocks grow, and small ones stay. At
// the end nothing of it is left; with `rest`, main sleeps for two seconds, in which a test can look
// at the memory. Usage: freed_memory HOW ROUNDS MEGABYTES [rest]; HOW is malloc, calloc, mmap (both
// of which are zero each time) or elsewhere (another thread frees). Prints one sum.
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned* take(const char* how, size_t bytes) {
    if (strcmp(how, "mmap") == 0)
        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return strcmp(how, "calloc") == 0 ? calloc(bytes, 1) : malloc(bytes);
}

int main(int argc, char** argv) {
    if (argc < 4) return 64;
    const char* how = argv[1];
    const int rounds = atoi(argv[2]);
    const int is_zero = strcmp(how, "mmap") == 0 || strcmp(how, "calloc") == 0;
    unsigned long sum = 0, dirty = 0;
    void* behind[1000] = {NULL};
    for (int round = 0; round < rounds; ++round) {
        const size_t bytes = ((size_t)atoi(argv[3]) << 20) + (size_t)round * 65536;
        const size_t count = bytes / sizeof(unsigned);
        unsigned* block = take(how, bytes);
        behind[round % 1000] = take(how, 8192);
        // Sparse in the last rounds: what was not written must be zero on every node all the same.
        const size_t step = round % 3 == 2 ? 4096 : 16;
#pragma omp parallel reduction(+ : sum, dirty)
        {
            const size_t threads = omp_get_num_threads(), self = omp_get_thread_num();
            if (is_zero)
                for (size_t i = (threads - 1 - self) * 64; i < count; i += threads * 512)
                    dirty += block[i] != 0;
#pragma omp barrier
            for (size_t i = count / threads * self; i < count / threads * (self + 1); i += step)
                block[i] = (unsigned)(i * 7 + round);
#pragma omp barrier
            const size_t next = (self + 1) % threads;
            for (size_t i = count / threads * next; i < count / threads * (next + 1); i += step)
                sum += block[i] ^ self;
#pragma omp barrier
            if (strcmp(how, "elsewhere") == 0 && self == threads - 1) free(block);
        }
        if (strcmp(how, "mmap") == 0)
            munmap(block, bytes);
        else if (strcmp(how, "elsewhere") != 0)
            free(block);
    }
    for (int i = 0; i < 1000; ++i)
        if (behind[i] != NULL && strcmp(how, "mmap") != 0) free(behind[i]);
    // What another thread has freed last goes when the threads meet the next times, and what was
    // kept for reuse when it was not used for one second and less than two.
    for (int second = 0; argc > 4 && second < 3; ++second) {
        for (int i = 0; i < 16; ++i) {
#pragma omp parallel
            usleep(1000);
        }
        if (second < 2) usleep(1050000);
    }
    if (argc > 4) usleep(2000000);
    printf("%s: %d rounds, sum %lu, %lu words that should have been zero\n", how, rounds, sum,
           dirty);
    return dirty != 0;
}
