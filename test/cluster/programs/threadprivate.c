// SPDX-License-Identifier: BSD-3-Clause
// threadprivate variables persist per thread, copyin copies the initial thread's, and their
// addresses differ between any two threads of the job.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int counter = 100;
static double vector[16];
#pragma omp threadprivate(counter, vector)

int main(void) {
    const int threads = omp_get_max_threads();
    void** addresses = calloc((size_t)threads, sizeof *addresses);
    int* values = calloc((size_t)threads, sizeof *values);
#pragma omp parallel
    {
        counter += omp_get_thread_num();
        addresses[omp_get_thread_num()] = &counter;
    }
#pragma omp parallel
    values[omp_get_thread_num()] = counter;
    for (int i = 0; i < threads; ++i) printf("thread %d has %d\n", i, values[i]);

    int equal = 0;
    for (int i = 0; i < threads; ++i)
        for (int k = 0; k < i; ++k) equal += addresses[i] == addresses[k];
    printf("equal addresses: %d\n", equal);

    counter = 7;
    for (int i = 0; i < 16; ++i) vector[i] = i * 0.5;
    double sum = 0;
#pragma omp parallel copyin(counter, vector) reduction(+ : sum)
    {
        values[omp_get_thread_num()] = counter;
        for (int i = 0; i < 16; ++i) sum += vector[i];
    }
    for (int i = 0; i < threads; ++i) printf("thread %d copied %d\n", i, values[i]);
    printf("sum %g\n", sum);

    // Locals of main are reachable by address.
    int local[64] = {0};
    int* const pointer = local;
#pragma omp parallel for
    for (int i = 0; i < 64; ++i) pointer[i] = i;
    int total = 0;
    for (int i = 0; i < 64; ++i) total += local[i];
    printf("local %d\n", total);
    free(addresses);
    free(values);
    return 0;
}
