// SPDX-License-Identifier: BSD-3-Clause
// Role: regions as gcc before 4.9 calls its runtime: the region's function is called by the program
// itself, between a start and an end.
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>

typedef void Function(void*);
void GOMP_parallel_start(Function* function, void* data, unsigned threads);
void GOMP_parallel_end(void);
void GOMP_parallel_loop_static_start(Function*, void*, unsigned, long, long, long, long);
void GOMP_parallel_loop_dynamic_start(Function*, void*, unsigned, long, long, long, long);
void GOMP_parallel_loop_guided_start(Function*, void*, unsigned, long, long, long, long);
void GOMP_parallel_loop_runtime_start(Function*, void*, unsigned, long, long, long);
void GOMP_parallel_sections_start(Function*, void*, unsigned, unsigned);
bool GOMP_loop_static_next(long*, long*);
bool GOMP_loop_dynamic_next(long*, long*);
bool GOMP_loop_guided_next(long*, long*);
bool GOMP_loop_runtime_next(long*, long*);
bool GOMP_loop_static_start(long, long, long, long, long*, long*);
void GOMP_loop_end(void);
void GOMP_loop_end_nowait(void);
unsigned GOMP_sections_next(void);
void GOMP_sections_end_nowait(void);
void GOMP_barrier(void);

enum { length = 5000 };
static long values[length];

struct Shared {
    long sum;
    int threads, entered, level, inner;
    bool (*next)(long*, long*);
};

static void run(Function* function, void* data) {
    function(data);
    GOMP_parallel_end();
}

static void count(void* data) {
    struct Shared* shared = data;
#pragma omp atomic
    ++shared->entered;
    GOMP_barrier();
    if (omp_get_thread_num() == 0) {
        shared->threads = omp_get_num_threads();
        shared->level = omp_get_level();
    }
}

static void loop(void* data) {
    struct Shared* shared = data;
    long first, end, sum = 0;
    while (shared->next(&first, &end))
        for (long i = first; i < end; ++i) {
            values[i] += i;
            sum += values[i];
        }
    GOMP_loop_end_nowait();
#pragma omp atomic
    shared->sum += sum;
}

static void orphan(void* data) {
    struct Shared* shared = data;
    long first, end, sum = 0;
    if (GOMP_loop_static_start(0, length, 1, 0, &first, &end)) do
            for (long i = first; i < end; ++i) sum += values[i];
        while (GOMP_loop_static_next(&first, &end));
    GOMP_loop_end();
#pragma omp critical
    shared->sum += sum;
}

static void sections(void* data) {
    struct Shared* shared = data;
    for (unsigned section; (section = GOMP_sections_next()) != 0;) {
#pragma omp atomic
        shared->sum += 1 << section;
    }
    GOMP_sections_end_nowait();
}

static void nests(void* data) {
    struct Shared* shared = data;
    struct Shared inner = {0};
    GOMP_parallel_start(count, &inner, 3);
    run(count, &inner);
#pragma omp atomic
    shared->inner += inner.entered;
    GOMP_barrier();
    shared->level = inner.level;
}

int main(void) {
    const int all = omp_get_max_threads();
    struct Shared shared = {0};
    GOMP_parallel_start(count, &shared, 0);
    run(count, &shared);
    printf("%d %d %d\n", shared.entered == all, shared.threads == all, shared.level);
    shared = (struct Shared){0};
    GOMP_parallel_start(count, &shared, 1);
    run(count, &shared);
    printf("%d %d %d %d\n", shared.entered, shared.threads, shared.level, omp_get_level());

    shared = (struct Shared){.next = GOMP_loop_static_next};
    GOMP_parallel_loop_static_start(loop, &shared, 0, 0, length, 1, 0);
    run(loop, &shared);
    printf("%ld\n", shared.sum);
    shared = (struct Shared){.next = GOMP_loop_dynamic_next};
    GOMP_parallel_loop_dynamic_start(loop, &shared, 0, 0, length, 1, 9);
    run(loop, &shared);
    printf("%ld\n", shared.sum);
    shared = (struct Shared){.next = GOMP_loop_guided_next};
    GOMP_parallel_loop_guided_start(loop, &shared, 0, 0, length, 1, 2);
    run(loop, &shared);
    printf("%ld\n", shared.sum);
    shared = (struct Shared){.next = GOMP_loop_runtime_next};
    GOMP_parallel_loop_runtime_start(loop, &shared, 0, 0, length, 1);
    run(loop, &shared);
    printf("%ld\n", shared.sum);
    shared = (struct Shared){0};
    GOMP_parallel_start(orphan, &shared, 0);
    run(orphan, &shared);
    printf("%ld\n", shared.sum);
    shared = (struct Shared){0};
    GOMP_parallel_sections_start(sections, &shared, 0, 5);
    run(sections, &shared);
    printf("%ld\n", shared.sum);

    omp_set_max_active_levels(2);
    shared = (struct Shared){0};
    GOMP_parallel_start(nests, &shared, 2);
    run(nests, &shared);
    printf("%d %d %d\n", shared.inner, shared.level, omp_in_parallel());
    omp_set_max_active_levels(1);
    shared = (struct Shared){0};
    GOMP_parallel_start(nests, &shared, 2);
    run(nests, &shared);
    printf("%d %d\n", shared.inner, shared.level);
    return 0;
}
