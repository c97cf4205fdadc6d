// SPDX-License-Identifier: BSD-3-Clause
// Role: the last thread reads a word of each of so many blocks that the first has written, in an
// order that nothing reads ahead in. The second time, when it knows which node had them, the first
// says by how much a counter in a file grew meanwhile.
// Usage: misses BLOCKS FILE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { block_bytes = 16384, blocks_max = 1024 };
static char memory[blocks_max][block_bytes] __attribute__((aligned(16384)));

static long counter(const char* name) {
    long value = -1;
    usleep(100000);  // the device brings its counters up to date every 12 ms
    FILE* const file = fopen(name, "r");
    if (file == NULL || fscanf(file, "%ld", &value) != 1) exit(78);
    fclose(file);
    return value;
}

int main(int argc, char** argv) {
    const int blocks = argc == 3 ? atoi(argv[1]) : 0;
    long sum = 0, before = 0, after = 0;
    if (blocks < 1 || blocks > blocks_max) return 64;
#pragma omp parallel reduction(+ : sum)
    {
        const int self = omp_get_thread_num(), last = omp_get_num_threads() - 1;
        for (int round = 1; round <= 2; ++round) {
            for (int i = 0; self == 0 && i < blocks; ++i) memory[i][i % 7] = (char)round;
#pragma omp barrier
            if (self == 0) before = counter(argv[2]);
#pragma omp barrier
            for (int i = 0; self == last && i < blocks; ++i) {
                const int at = (int)(i * 397L % blocks);  // 397 is prime
                sum += memory[at][at % 7];
            }
#pragma omp barrier
            if (self == 0) after = counter(argv[2]);
        }
    }
    printf("%s: %ld of %d, counter %ld\n", sum == 3 * blocks ? "VERIFICATION SUCCESSFUL" : "wrong",
           sum, 3 * blocks, after - before);
    return sum != 3 * blocks;
}
