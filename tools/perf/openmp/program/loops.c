// SPDX-License-Identifier: BSD-3-Clause
// Role: loops of 128 iterations a thread by each schedule. Method: EPCC's schedbench, with bodies
// as good as empty, so that the whole time is the construct's. "data": each iteration writes an
// element of its own of one array.
#include <stddef.h>

#include "tools/perf/openmp/program/rows.h"

enum { ITERATIONS = 128 };

static long values[ITERATIONS * THREADS_MAX] __attribute__((aligned(4096)));
static long value_base;

#define PRAGMA(text) _Pragma(#text)
#define LOOP(name, ...)                                                        \
    static long name(long count) {                                             \
        _Pragma("omp parallel") for (long i = 0; i < count; ++i) {             \
            PRAGMA(omp for schedule(__VA_ARGS__))                              \
            for (int t = 0; t < ITERATIONS * threads; ++t) ++account.executed; \
        }                                                                      \
        return count * threads * ITERATIONS;                                   \
    }                                                                          \
    static long name##_data(long count) {                                      \
        value_base = values[0];                                                \
        _Pragma("omp parallel") for (long i = 0; i < count; ++i) {             \
            PRAGMA(omp for schedule(__VA_ARGS__))                              \
            for (int t = 0; t < ITERATIONS * threads; ++t) {                   \
                ++account.executed;                                            \
                ++values[t];                                                   \
            }                                                                  \
        }                                                                      \
        return count * threads * ITERATIONS;                                   \
    }

LOOP(static_all, static)
LOOP(static_1, static, 1)
LOOP(static_8, static, 8)
LOOP(static_64, static, 64)
LOOP(dynamic_1, dynamic, 1)
LOOP(dynamic_8, dynamic, 8)
LOOP(dynamic_64, dynamic, 64)
LOOP(guided_1, guided, 1)
LOOP(guided_8, guided, 8)
LOOP(guided_64, guided, 64)

static void verify_values(long count) {
    for (int t = 0; t < ITERATIONS * threads; ++t)
        expect((double)values[t], (double)(value_base + count));
}

#define ROWS(name, text, is) \
    {text, name, NULL, is}, { text ", data", name##_data, verify_values, is }

const struct row loop_rows[] = {
    ROWS(static_all, "for static", EVERYONE),
    ROWS(static_1, "for static,1", EVERYONE),
    ROWS(static_8, "for static,8", EVERYONE),
    ROWS(static_64, "for static,64", EVERYONE),
    ROWS(dynamic_1, "for dynamic,1", 0),
    ROWS(dynamic_8, "for dynamic,8", 0),
    ROWS(dynamic_64, "for dynamic,64", 0),
    ROWS(guided_1, "for guided,1", 0),
    ROWS(guided_8, "for guided,8", 0),
    ROWS(guided_64, "for guided,64", 0),
    {NULL, NULL, NULL, 0},
};
