// SPDX-License-Identifier: BSD-3-Clause
// Role: rounds of a `single nowait` behind which every thread adds to the variable, one variable a
// round: a race. Prints each variable whose sum is not that of all threads behind the store, with
// its address. argv: the number of rounds, up to rounds_max.
#include <stdio.h>
#include <stdlib.h>

enum { terms = 1000, rounds_max = 1 << 14 };
static double sums[rounds_max], seen[rounds_max];

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 0;
    if (rounds < 1 || rounds > rounds_max) return 64;
    // A store that changes no byte is no store that a node could tell of.
    for (int round = 0; round < rounds; ++round) sums[round] = terms;
#pragma omp parallel
    for (int round = 0; round < rounds; ++round) {
#pragma omp single nowait
        sums[round] = 0;
        double own = 0;
#pragma omp for nowait
        for (int i = 0; i < terms; ++i) own += 1;
#pragma omp atomic
        sums[round] += own;
#pragma omp barrier
#pragma omp single
        seen[round] = sums[round];
    }
    for (int round = 0; round < rounds; ++round)
        if (seen[round] != terms)
            printf("%#lx %d: %g\n", (unsigned long)&sums[round], round, seen[round]);
    puts("end");
    return 0;
}
