// SPDX-License-Identifier: BSD-3-Clause
// Target regions as clang compiles them, without a device: alone (the compiler calls the host's
// version itself), and built for a device that then fails (-fopenmp-targets).
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "verdict.h"

enum { count = 400 };

#pragma omp declare target
static int on_device = 5;
static int twice(int x) { return 2 * x; }
#pragma omp end declare target

static void regions(void) {
    int value = 1, kept = 10, list[count];
    for (int i = 0; i < count; i++) list[i] = i;
#pragma omp target map(tofrom : value, list) firstprivate(kept)
    {
        value += kept + twice(on_device);
        kept = 99;
        for (int i = 0; i < count; i++) list[i] *= 2;
    }
    check("map and firstprivate", value == 21 && kept == 10 && list[count - 1] == 2 * (count - 1));
    long sum = 0;
#pragma omp target teams distribute parallel for map(tofrom : sum) map(to : list) reduction(+ : sum)
    for (int i = 0; i < count; i++) sum += list[i];
    check("target teams distribute parallel for", sum == (long)count * (count - 1));
    sum = 0;
#pragma omp target parallel for map(tofrom : sum) reduction(+ : sum) schedule(dynamic, 3)
    for (int i = 0; i < count; i++) sum += i;
    check("target parallel for", sum == (long)count * (count - 1) / 2);
    value = 0;
#pragma omp target if (value > 0) map(tofrom : value)
    value = 3;
    check("target if(0)", value == 3);
    check("where it runs", omp_is_initial_device());
}

static void data(void) {
    int* const list = malloc(count * sizeof *list);
    for (int i = 0; i < count; i++) list[i] = i;
#pragma omp target data map(tofrom : list [0:count])
    {
#pragma omp target
        for (int i = 0; i < count; i++) list[i] += 1;
#pragma omp target update from(list [0:count])
#pragma omp target parallel for
        for (int i = 0; i < count; i++) list[i] *= 3;
    }
#pragma omp target enter data map(to : list [0:count])
#pragma omp target exit data map(from : list [0:count])
    int right = 1;
    for (int i = 0; i < count; i++) right &= list[i] == 3 * (i + 1);
    check("target data", right);
    free(list);
}

int main(void) {
    const int threads = team_size();
    regions();
    data();
    return wrong + (threads == 0);
}
