// SPDX-License-Identifier: BSD-3-Clause
// Role: what a region costs whose threads write their own data alone, region after region: what a
// shared memory should do for nothing. argv: MB, regions. Prints seconds a region; the first one,
// which touches the data, is not counted.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static void sweep(double* data, size_t count) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; ++i) data[i] = .5 * data[i] + (double)(i & 15);
}

int main(int count, char** words) {
    if (count != 3) return 64;
    const size_t doubles = strtoul(words[1], NULL, 10) * 1000000 / sizeof(double);
    const long regions = strtol(words[2], NULL, 10);
    double* const data = calloc(doubles, sizeof *data);
    if (doubles == 0 || regions <= 0 || !data) return 64;
    sweep(data, doubles);
    const double begin = omp_get_wtime();
    for (long r = 0; r < regions; ++r) sweep(data, doubles);
    const double seconds = (omp_get_wtime() - begin) / (double)regions;
    double expected[16];
    for (int i = 0; i < 16; ++i) {
        expected[i] = 0;
        for (long r = 0; r <= regions; ++r) expected[i] = .5 * expected[i] + i;
    }
    size_t wrong = 0;
    // Each thread looks at its own part: then nothing of the data ever moves.
#pragma omp parallel for schedule(static) reduction(+ : wrong)
    for (size_t i = 0; i < doubles; ++i) wrong += data[i] != expected[i & 15];
    printf("seconds %.9f\n%s\n", seconds, wrong == 0 ? "right" : "wrong");
    free(data);
    return wrong != 0;
}
