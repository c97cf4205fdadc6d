// SPDX-License-Identifier: BSD-3-Clause
// Role: sweeps of alternating direction over a cube of doubles, each along another axis: the last
// one shares out the columns that the two before shared out by planes, so half of all data change
// hands twice a step. argv: points along an edge, steps. Prints seconds and a sum, the same for any
// number of threads.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static size_t edge;
static double* cube;

static double* line(size_t i, size_t j) { return cube + (i * edge + j) * edge; }

/// Adds to each point of a line half of what the line before has.
static void follow(double* points, const double* before) {
    for (size_t k = 0; k < edge; ++k) points[k] = .5 * points[k] + .5 * before[k];
}

static void step(void) {
#pragma omp parallel for
    for (size_t i = 0; i < edge; ++i)
        for (size_t j = 0; j < edge; ++j)
            for (size_t k = 1; k < edge; ++k)
                line(i, j)[k] = .5 * line(i, j)[k] + .5 * line(i, j)[k - 1];
#pragma omp parallel for
    for (size_t i = 0; i < edge; ++i)
        for (size_t j = 1; j < edge; ++j) follow(line(i, j), line(i, j - 1));
#pragma omp parallel for
    for (size_t j = 0; j < edge; ++j)
        for (size_t i = 1; i < edge; ++i) follow(line(i, j), line(i - 1, j));
}

int main(int count, char** words) {
    if (count != 3) return 64;
    edge = strtoul(words[1], NULL, 10);
    const long steps = strtol(words[2], NULL, 10);
    cube = malloc(edge * edge * edge * sizeof *cube);
    if (edge == 0 || steps <= 0 || !cube) return 64;
#pragma omp parallel for
    for (size_t i = 0; i < edge; ++i)
        for (size_t j = 0; j < edge; ++j)
            for (size_t k = 0; k < edge; ++k) line(i, j)[k] = (double)((i * 7 + j * 3 + k) % 11);
    const double begin = omp_get_wtime();
    for (long s = 0; s < steps; ++s) step();
    const double seconds = omp_get_wtime() - begin;
    double sum = 0;
    for (size_t i = 0; i < edge * edge * edge; ++i) sum += cube[i] * (double)(1 + i % 7);
    printf("seconds %.6f\nsum %.17g\n", seconds, sum);
    free(cube);
    return 0;
}
