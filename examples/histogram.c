// SPDX-License-Identifier: BSD-3-Clause
// A histogram whose threads share the bins and count with `omp atomic`: one word for each bin, a
// maximum kept by compare and exchange, tickets drawn with atomic capture.
// Usage: ./histogram [samples]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { bins = 64 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// A sample from its number alone (the finalizer of splitmix64), so that order does not matter.
static uint64_t sample(uint64_t i) {
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static int64_t histogram[bins];
static double weight;

int main(int argc, char** argv) {
    const int64_t samples = argc > 1 ? atoll(argv[1]) : 20000;
    char* drawn = samples > 0 ? calloc((size_t)samples, 1) : NULL;
    if (drawn == NULL) {
        fprintf(stderr, "usage: histogram [samples, 1 or more]\n");
        return 2;
    }

    const double start = now();
    int64_t tickets = 0;
    int largest = 0;
#pragma omp parallel for
    for (int64_t i = 0; i < samples; i++) {
        const uint64_t s = sample((uint64_t)i);
        const int bin = (int)(s % bins);
#pragma omp atomic
        histogram[bin]++;
#pragma omp atomic
        weight += 0.5 * bin;
        if (i % 16 == 0) {
            int64_t ticket;
#pragma omp atomic capture
            ticket = tickets++;
            drawn[ticket]++;
        }
#pragma omp atomic compare
        if (largest < bin) {
            largest = bin;
        }
    }
    const double seconds = now() - start;

    int64_t expected[bins] = {0}, expected_tickets = (samples + 15) / 16;
    int expected_largest = 0;
    double expected_weight = 0;
    for (int64_t i = 0; i < samples; i++) {
        const int bin = (int)(sample((uint64_t)i) % bins);
        expected[bin]++;
        expected_weight += 0.5 * bin;
        if (expected_largest < bin) expected_largest = bin;
    }
    int good =
        tickets == expected_tickets && largest == expected_largest && weight == expected_weight;
    for (int i = 0; i < bins; i++) good &= histogram[i] == expected[i];
    for (int64_t i = 0; i < expected_tickets; i++) good &= drawn[i] == 1;
    printf("HISTOGRAM %lld samples %lld tickets seconds %.3f VERIFICATION %s\n", (long long)samples,
           (long long)tickets, seconds, good ? "SUCCESSFUL" : "FAILED");
    free(drawn);
    return good ? 0 : 1;
}
