// SPDX-License-Identifier: BSD-3-Clause
// Role: the last thread reads a word of each of ARGUMENT blocks that the first has written, in an
// order that nothing reads ahead in.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { block_bytes = 16384, blocks_max = 1024 };
static char memory[blocks_max][block_bytes] __attribute__((aligned(16384)));

int main(int argc, char** argv) {
    const int blocks = argc > 1 ? atoi(argv[1]) : 64;
    long sum = 0;
    if (blocks < 1 || blocks > blocks_max) return 64;
#pragma omp parallel reduction(+ : sum)
    {
        for (int i = 0; omp_get_thread_num() == 0 && i < blocks; ++i) memory[i][i % 7] = 1;
#pragma omp barrier
        const int last = omp_get_num_threads() - 1;
        for (int i = 0; omp_get_thread_num() == last && i < blocks; ++i) {
            const int at = (int)(i * 397L % blocks);  // 397 is prime and divides no argument here
            sum += memory[at][at % 7];
        }
    }
    printf("%s: %ld of %d\n", sum == blocks ? "VERIFICATION SUCCESSFUL" : "wrong", sum, blocks);
    return sum != blocks;
}
