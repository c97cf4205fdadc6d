// SPDX-License-Identifier: BSD-3-Clause
// Heat in a square plate whose edges are held at zero, by explicit time steps. The start is one
// half sine wave each way, an eigenvector of the scheme: every step multiplies it by the same
// factor, so the exact answer is known. Usage: ./heat [cells per side] [steps]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 256;
    const int steps = argc > 2 ? atoi(argv[2]) : 200;
    if (n < 2 || n > 20000 || steps < 1) {
        fprintf(stderr, "usage: heat [cells per side, 2 to 20000] [steps]\n");
        return 2;
    }
    const int width = n + 1;
    const double pi = acos(-1), ratio = 0.2;
    double* plate = calloc((size_t)width * width, sizeof *plate);
    double* next = calloc((size_t)width * width, sizeof *next);
    if (plate == NULL || next == NULL) {
        fprintf(stderr, "heat: out of memory\n");
        return 2;
    }

    const double start = now();
#pragma omp parallel for
    for (int i = 1; i < n; i++) {
        for (int j = 1; j < n; j++) plate[i * width + j] = sin(pi * i / n) * sin(pi * j / n);
    }
    for (int step = 0; step < steps; step++) {
#pragma omp parallel for
        for (int i = 1; i < n; i++) {
            const double* here = plate + (size_t)i * width;
            for (int j = 1; j < n; j++) {
                next[(size_t)i * width + j] =
                    here[j] + ratio * (here[j - 1] + here[j + 1] + here[j - width] +
                                       here[j + width] - 4 * here[j]);
            }
        }
        double* swap = plate;
        plate = next;
        next = swap;
    }

    const double decay = pow(1 - 4 * ratio * (1 - cos(pi / n)), steps);
    double worst = 0;
#pragma omp parallel for reduction(max : worst)
    for (int i = 0; i <= n; i++) {
        for (int j = 0; j <= n; j++) {
            const double exact = decay * sin(pi * i / n) * sin(pi * j / n);
            worst = fmax(worst, fabs(plate[(size_t)i * width + j] - exact));
        }
    }
    // `decay` bounds the solution from above: an empty plate must not pass.
    const int good = worst <= 1e-12 && plate[(size_t)(n / 2) * width + n / 2] > 0.5 * decay;
    printf("HEAT %d cells %d steps error %.1e seconds %.3f VERIFICATION %s\n", n, steps, worst,
           now() - start, good ? "SUCCESSFUL" : "FAILED");
    free(plate), free(next);
    return good ? 0 : 1;
}
