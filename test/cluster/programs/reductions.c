// SPDX-License-Identifier: BSD-3-Clause
// Reductions at the end of regions: gcc ends such a function by one atomic on its copy of the
// variable, and the term travels in the join. Each operator and type, terms in registers, constants
// and on the stack; and what looks alike: atomics of the program's own, on which threads of other
// nodes wait within the region.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { threads_most = 64, rounds = 50, length = 4096 };
static double numbers[length];
static int whole[length];
static int arrived;

__attribute__((noinline)) static double touched(const double* number) {
    volatile double copy = *number;
    return copy;
}

static double sum_of_doubles(int from) {
    double sum = from;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < length; ++i) sum += numbers[i];
    return sum;
}

static float product_of_floats(int n) {
    float product = 1;
#pragma omp parallel for reduction(* : product)
    for (int i = 0; i < n; ++i) product *= 2;
    return product;
}

static double greatest(void) {
    double most = -1;
#pragma omp parallel for reduction(max : most)
    for (int i = 0; i < length; ++i) most = numbers[i] > most ? numbers[i] : most;
    return most;
}

static float least(void) {
    float fewest = 1e9f;
#pragma omp parallel for reduction(min : fewest)
    for (int i = 0; i < length; ++i)
        fewest = (float)numbers[i] - 7 < fewest ? (float)numbers[i] - 7 : fewest;
    return fewest;
}

static double with_calls(void) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < length; ++i) sum += touched(&numbers[i]);
    return sum;
}

static long integers(void) {
    int sum = -5;
    long wide = 1l << 40;
    unsigned bits = 0xffffffffu;
    unsigned char some = 0;
    short odd = 0;
    int threads = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < length; ++i) sum += whole[i];
#pragma omp parallel for reduction(- : wide)
    for (int i = 0; i < length; ++i) wide -= whole[i] * 3l;
#pragma omp parallel for reduction(& : bits)
    for (int i = 0; i < length; ++i) bits &= ~(1u << (i % 5));
#pragma omp parallel for reduction(| : some)
    for (int i = 0; i < length; ++i) some |= (unsigned char)(i & 0x41);
#pragma omp parallel for reduction(^ : odd)
    for (int i = 0; i < length; ++i) odd ^= (short)whole[i];
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    if (threads != omp_get_max_threads()) printf("%d threads were counted\n", threads);
    return sum + wide + (long)bits + some + odd;
}

// Two variables, whose sums gcc makes under a lock, and a region that ends in other code.
static double two(void) {
    double sum = 0, squares = 0;
    long after = 0;
#pragma omp parallel for reduction(+ : sum, squares)
    for (int i = 0; i < length; ++i) {
        sum += numbers[i];
        squares += numbers[i] * numbers[i];
    }
    double inner = 0, seen[threads_most] = {0};
#pragma omp parallel
    {
#pragma omp for reduction(+ : inner)
        for (int i = 0; i < length; ++i) inner += numbers[i];
        seen[omp_get_thread_num()] = inner;
#pragma omp for reduction(+ : after)
        for (int i = 0; i < length; ++i) after += whole[i];
    }
    for (int t = 0; t < omp_get_max_threads(); ++t)
        if (seen[t] != inner) printf("thread %d saw %g of %g\n", t, seen[t], inner);
    return sum + squares + inner + (double)after;
}

// The first thread waits for what the others do last.
static void awaited(void) {
    int own = 0;
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0) {
            int come = 0;
            while (come != 2 * (omp_get_num_threads() - 1)) {
                int global, local;
#pragma omp atomic read
                global = arrived;
#pragma omp atomic read
                local = own;
                come = global + local;
            }
        } else {
#pragma omp atomic
            arrived += 1;
#pragma omp atomic
            own += 1;
        }
    }
    arrived = 0;
}

// Inside another region, and where its node's threads alone are the team.
static long nested(void) {
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        long inner = 0;
#pragma omp parallel num_threads(2) reduction(+ : inner)
        inner += omp_get_level();
        sum += inner / 2 + (inner % 2) * 1000;
    }
    return sum / omp_get_max_threads();
}

int main(void) {
    for (int i = 0; i < length; ++i) {
        numbers[i] = (i * 37) % 1001;
        whole[i] = (i * 29) % 513 - 100;
    }
    double sums = 0, most = 0, few = 0, calls = 0, pairs = 0, product = 0;
    long integer = 0, deep = 0;
    for (int round = 0; round < rounds; ++round) {
        sums += sum_of_doubles(round);
        product += product_of_floats(20);
        most += greatest();
        few += least();
        calls += with_calls();
        integer += integers();
        pairs += two();
        awaited();
        deep += nested();
    }
    printf("%.0f %.0f %.0f %.0f %.0f %ld %.0f %ld\n", sums, product, most, few, calls, integer,
           pairs, deep);
    return 0;
}
