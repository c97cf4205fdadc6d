// SPDX-License-Identifier: BSD-3-Clause
// The Mandelbrot set by rows of very unequal cost, dealt out with schedule(dynamic); every pixel
// is compared with a serial run. Usage: ./mandelbrot [pixels per side]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { iterations_max = 400 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint16_t escape_time(int row, int column, int side) {
    const double a = -2.0 + 2.5 * column / side, b = -1.25 + 2.5 * row / side;
    double x = 0, y = 0;
    uint16_t n = 0;
    while (n < iterations_max && x * x + y * y <= 4) {
        const double next = x * x - y * y + a;
        y = 2 * x * y + b;
        x = next;
        n++;
    }
    return n;
}

// Depends on every pixel and its place.
static uint64_t checksum(const uint16_t* image, int side) {
    uint64_t sum = 0;
    for (int i = 0; i < side * side; i++) sum = sum * 31 + image[i];
    return sum;
}

int main(int argc, char** argv) {
    const int side = argc > 1 ? atoi(argv[1]) : 400;
    if (side < 2 || side > 20000) {
        fprintf(stderr, "usage: mandelbrot [pixels per side, 2 to 20000]\n");
        return 2;
    }
    uint16_t* image = calloc((size_t)side * side, sizeof *image);
    uint16_t* serial = calloc((size_t)side * side, sizeof *serial);
    if (image == NULL || serial == NULL) {
        fprintf(stderr, "mandelbrot: out of memory\n");
        return 2;
    }

    const double start = now();
#pragma omp parallel for schedule(dynamic)
    for (int row = 0; row < side; row++) {
        for (int column = 0; column < side; column++) {
            image[(size_t)row * side + column] = escape_time(row, column, side);
        }
    }
    const double seconds = now() - start;

    for (int row = 0; row < side; row++) {
        for (int column = 0; column < side; column++) {
            serial[(size_t)row * side + column] = escape_time(row, column, side);
        }
    }
    const int good = checksum(image, side) == checksum(serial, side);
    printf("MANDELBROT %d checksum %016llx seconds %.3f VERIFICATION %s\n", side,
           (unsigned long long)checksum(image, side), seconds, good ? "SUCCESSFUL" : "FAILED");
    free(image), free(serial);
    return good ? 0 : 1;
}
