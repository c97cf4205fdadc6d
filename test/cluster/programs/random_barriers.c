// SPDX-License-Identifier: BSD-3-Clause
// Seeded random writes to shared arrays and to other threads' stacks, checked after each barrier
// against what every thread computes by itself. Pages are shared between writers all the time, so
// that copies are invalidated, updated in place and written again in every order.
// Usage: random_barriers SEED ROUNDS. Prints nothing but a verdict; exit status 1 on a wrong byte.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { area_bytes = 96 * 1024, stack_bytes = 6000, threads_max = 64 };

static unsigned char area[area_bytes];
static unsigned char* stacks[threads_max];
static int wrong;

static uint64_t next(uint64_t* state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Some writes of one round to `bytes` bytes, the same on every thread; each thread stores its own.
// A window that stays for some rounds makes the same copies be used again and again.
static void write_some(uint64_t* random, unsigned char* memory, unsigned char* oracle, int bytes,
                       int threads, int me, int round) {
    const int window = round / 16 % 2 == 0 ? bytes : bytes / 8;
    for (int at = (int)(next(random) % 256); at < window;) {
        const int longest = next(random) % 8 == 0 ? 5000 : 48;
        int length = 1 + (int)(next(random) % longest);
        if (length > window - at) length = window - at;
        const int writer = (int)(next(random) % threads);
        const unsigned char value = (unsigned char)next(random);
        if (writer == me) memset(memory + at, value, length);
        memset(oracle + at, value, length);
        at += length + (int)(next(random) % 3 == 0 ? next(random) % 3000 : next(random) % 5);
    }
}

// Leaves garbage below the frames that are in use, at another depth each time.
static __attribute__((noinline)) unsigned dig(unsigned depth, unsigned value) {
    volatile unsigned char garbage[300];
    memset((void*)garbage, (int)value, sizeof garbage);
    return depth == 0 ? garbage[value % sizeof garbage] : dig(depth - 1, value) + garbage[0];
}

static void check(const unsigned char* memory, const unsigned char* oracle, int bytes,
                  const char* what, int owner, int round, int me) {
    for (int i = 0; i < bytes; ++i) {
        if (memory[i] == oracle[i]) continue;
        printf("thread %d round %d: byte %d of %s %d is %d, should be %d\n", me, round, i, what,
               owner, memory[i], oracle[i]);
        exit(1);
    }
}

int main(int argc, char** argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int rounds = argc > 2 ? atoi(argv[2]) : 100;
#pragma omp parallel
    {
        const int me = omp_get_thread_num(), threads = omp_get_num_threads();
        unsigned char mine[stack_bytes];
        memset(mine, 0, sizeof mine);
        stacks[me] = mine;
        unsigned char* const oracle = calloc(1, area_bytes);
        unsigned char* const stack_oracle = calloc(threads, stack_bytes);
        uint64_t random = seed, own = seed * 1000 + (uint64_t)me;
#pragma omp barrier
        for (int round = 0; round < rounds; ++round) {
            write_some(&random, area, oracle, area_bytes, threads, me, round);
            for (int t = 0; t < threads; ++t)
                write_some(&random, stacks[t], stack_oracle + t * stack_bytes, stack_bytes, threads,
                           me, round);
            if (dig((unsigned)(next(&own) % 40), (unsigned)next(&own) % 256) == ~0u) wrong = 1;
#pragma omp barrier
            if (next(&own) % 3 != 0) check(area, oracle, area_bytes, "area", 0, round, me);
            const int t = (int)(next(&own) % (unsigned)threads);
            check(stacks[t], stack_oracle + t * stack_bytes, stack_bytes, "stack", t, round, me);
#pragma omp barrier
        }
        free(oracle);
        free(stack_oracle);
    }
    printf("%d rounds of seed %lu right\n", rounds, (unsigned long)seed);
    return wrong;
}
