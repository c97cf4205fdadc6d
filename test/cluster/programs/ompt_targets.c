// SPDX-License-Identifier: BSD-3-Clause
// Target constructs, dependences and an `error` construct, for a tool that counts them
// (ompt_runs.py knows how many of each).
#include <omp.h>
#include <stdio.h>

enum { links = 8, values_max = 1000 };

static long values[values_max];

static void pass_time(void) {
    const double until = omp_get_wtime() + 1e-3;
    while (omp_get_wtime() < until) {
    }
}

int main(void) {
    long sum = 0, chain = 1, side = 0;
    for (int i = 0; i < 2; ++i) {
#pragma omp target map(tofrom : sum) firstprivate(i)
        sum += i + 1;
    }
#pragma omp target data map(tofrom : values)
    {
#pragma omp target parallel for map(tofrom : values)
        for (int i = 0; i < values_max; ++i) values[i] += i;
#pragma omp target update from(values)
    }
#pragma omp target enter data map(to : values)
#pragma omp target exit data map(from : values)
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < links; ++i) {
#pragma omp target nowait depend(inout : chain) map(tofrom : chain) firstprivate(i)
            {
                pass_time();
                chain = 2 * chain + i;
            }
        }
#pragma omp target enter data nowait depend(inout : chain) map(to : values)
#pragma omp task depend(in : chain) depend(out : side) shared(chain, side)
        side = chain;
#pragma omp taskwait
    }
    long all = 0;
    for (int i = 0; i < values_max; ++i) all += values[i];
#pragma omp error at(execution) severity(warning) message("mild")
    printf("targets %ld %ld %ld %ld\n", sum, chain, side, all);
    return 0;
}
