// SPDX-License-Identifier: BSD-3-Clause
// EP, "embarrassingly parallel", after the NAS Parallel Benchmarks specification (NAS-91-002,
// section 2.2): pairs of Gaussian deviates by the acceptance-rejection method, their sums and how
// many fall into each square annulus. Usage: ./ep [S|W|A]
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct Class {
    char name;
    int log2_pairs;
    double sum_x, sum_y;  // published results
};

static const struct Class classes[] = {
    {'S', 24, -3.247834652034740e3, -6.958407078382297e3},
    {'W', 25, -2.863319731645753e3, -6.320053679109499e3},
    {'A', 28, -4.295875165629892e3, -1.580732573678431e4},
};

enum { log2_batch = 16, annuli = 10 };

static const uint64_t multiplier = 1220703125;  // 5^13
static const uint64_t seed = 271828183;
static const uint64_t mask46 = (UINT64_C(1) << 46) - 1;

// The generator is x[k+1] = a x[k] mod 2^46; a 64-bit product has the low 46 bits right.
static double next(uint64_t* x) {
    *x = *x * multiplier & mask46;
    return (double)*x * 0x1p-46;
}

// multiplier^exponent mod 2^46
static uint64_t power(uint64_t exponent) {
    uint64_t result = 1, square = multiplier;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result = result * square & mask46;
        square = square * square & mask46;
    }
    return result;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
    const char wanted = argc > 1 ? argv[1][0] : 'S';
    const struct Class* class = NULL;
    for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (classes[i].name == wanted) class = &classes[i];
    }
    if (class == NULL) {
        fprintf(stderr, "usage: ep [S|W|A]\n");
        return 2;
    }

    const double start = now();
    const int64_t batches = INT64_C(1) << (class->log2_pairs - log2_batch);
    double sum_x = 0, sum_y = 0;
    int64_t counts[annuli] = {0};
#pragma omp parallel for reduction(+ : sum_x, sum_y, counts)
    for (int64_t batch = 0; batch < batches; batch++) {
        uint64_t x = seed * power((uint64_t)batch << (log2_batch + 1)) & mask46;
        for (int i = 0; i < 1 << log2_batch; i++) {
            const double u = 2 * next(&x) - 1;
            const double v = 2 * next(&x) - 1;
            const double square = u * u + v * v;
            if (square > 1) continue;
            const double scale = sqrt(-2 * log(square) / square);
            const double gauss_x = u * scale, gauss_y = v * scale;
            counts[(int)fmax(fabs(gauss_x), fabs(gauss_y))]++;
            sum_x += gauss_x;
            sum_y += gauss_y;
        }
    }

    int64_t pairs = 0;
    for (int i = 0; i < annuli; i++) pairs += counts[i];
    const int good = fabs((sum_x - class->sum_x) / class->sum_x) <= 1e-8 &&
                     fabs((sum_y - class->sum_y) / class->sum_y) <= 1e-8;
    printf("EP %c sums %.15e %.15e pairs %lld seconds %.3f VERIFICATION %s\n", class->name, sum_x,
           sum_y, (long long)pairs, now() - start, good ? "SUCCESSFUL" : "FAILED");
    return good ? 0 : 1;
}
