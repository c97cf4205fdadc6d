// SPDX-License-Identifier: BSD-3-Clause
// What each construct of OpenMP costs beside the work in it, with and without data that threads
// share. Method: EPCC's syncbench (Bull, "Measuring synchronisation and scheduling overheads in
// OpenMP", EWOMP 1999): many constructs around a short delay, less the delay alone.
// Usage: constructs [MICROSECONDS_A_SAMPLE [NAME]]. Prints a line for each: name, median, smallest
// and 90th percentile in microseconds. Bench: bench/openmp_constructs.py.
// A construct whose effect can be checked is; a wrong result ends the program with status 1.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 15,
    PAGE_LONGS = 512,
    THREADS_MAX = 64,
    PAGES_READ = 64,
    CONSTRUCTS_MAX = 1 << 20
};

static int threads, delay_length;
static double sample_us = 2000;
static omp_lock_t lock;
static long pages[THREADS_MAX * PAGE_LONGS] __attribute__((aligned(4096)));
static long written_pages[PAGES_READ * PAGE_LONGS] __attribute__((aligned(4096)));
static int copied;
#pragma omp threadprivate(copied)

__attribute__((noinline)) static void delay(void) {
    volatile float sum = 0;
    for (int i = 0; i < delay_length; ++i) sum += (float)i;
}

static void check(const char* what, double got, double wanted) {
    if (got == wanted) return;
    printf("%s: %g instead of %g\n", what, got, wanted);
    exit(1);
}

// Each runs `count` constructs.
static void nothing(int count) {
    for (int i = 0; i < count; ++i) delay();
}
static void parallel(int count) {
    for (int i = 0; i < count; ++i) {
#pragma omp parallel
        delay();
    }
}
static void for_static(int count) {
#pragma omp parallel
    for (int i = 0; i < count; ++i) {
#pragma omp for
        for (int t = 0; t < threads; ++t) delay();
    }
}
static void barrier(int count) {
#pragma omp parallel
    for (int i = 0; i < count; ++i) {
        delay();
#pragma omp barrier
    }
}
static void single(int count) {
#pragma omp parallel
    for (int i = 0; i < count; ++i) {
#pragma omp single
        delay();
    }
}
static void critical_contended(int count) {
#pragma omp parallel
    for (int i = 0; i < count / threads; ++i) {
#pragma omp critical
        delay();
    }
}
static void critical_counter(int count) {
    long counter = 0;
#pragma omp parallel
    for (int i = 0; i < count / threads; ++i) {
#pragma omp critical
        {
            ++counter;
            delay();
        }
    }
    check("critical", (double)counter, (double)(count / threads * threads));
}
static void lock_contended(int count) {
#pragma omp parallel
    for (int i = 0; i < count / threads; ++i) {
        omp_set_lock(&lock);
        delay();
        omp_unset_lock(&lock);
    }
}
static void lock_alone(int count) {
    for (int i = 0; i < count; ++i) {
        omp_set_lock(&lock);
        delay();
        omp_unset_lock(&lock);
    }
}
static void ordered(int count) {
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < count; ++i) {
#pragma omp ordered
        delay();
    }
}
static void atomic_contended(int count) {
    long counter = 0;
#pragma omp parallel
    for (int i = 0; i < count / threads; ++i) {
        delay();
#pragma omp atomic
        ++counter;
    }
    check("atomic", (double)counter, (double)(count / threads * threads));
}
static void atomic_alone(int count) {
    static long counter;
    counter = 0;
    for (int i = 0; i < count; ++i) {
        delay();
#pragma omp atomic
        ++counter;
    }
    check("atomic", (double)counter, (double)count);
}
static void reduction(int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) {
#pragma omp parallel reduction(+ : sum)
        {
            delay();
            sum += 1;
        }
    }
    check("reduction", sum, (double)count * threads);
}
static void copyin(int count) {
    copied = count;
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
#pragma omp parallel copyin(copied)
        {
            delay();
            if (copied != count) wrong = 1;
        }
    }
    check("copyin", wrong, 0);
}
static void loop_of(int count, omp_sched_t kind, int chunk) {
    omp_set_schedule(kind, chunk);
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    for (int i = 0; i < count; ++i) {
#pragma omp for schedule(runtime)
        for (int t = 0; t < 128 * threads; ++t) ++sum;
    }
    check("loop", (double)sum, 128.0 * threads * count);
}
static void for_dynamic(int count) { loop_of(count, omp_sched_dynamic, 1); }
static void for_dynamic_8(int count) { loop_of(count, omp_sched_dynamic, 8); }
static void for_guided(int count) { loop_of(count, omp_sched_guided, 1); }
static void own_page(int count) {
    for (int i = 0; i < count; ++i) {
#pragma omp parallel
        ++pages[omp_get_thread_num() * PAGE_LONGS];
    }
}
static void one_page(int count) {
    for (int i = 0; i < count; ++i) {
#pragma omp parallel
        ++pages[omp_get_thread_num() * 8 + 64];
    }
}
static void neighbour(int count) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    for (int i = 0; i < count; ++i) {
        const int thread = omp_get_thread_num();
        pages[thread * PAGE_LONGS] = i;
#pragma omp barrier
        wrong += pages[(thread + 1) % threads * PAGE_LONGS] != i;
#pragma omp barrier
    }
    check("neighbour", wrong, 0);
}
static void serial_write(int count) {
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        for (int page = 0; page < PAGES_READ; ++page) written_pages[page * PAGE_LONGS] = i + page;
#pragma omp parallel
        {
            int bad = 0;
            for (int page = 0; page < PAGES_READ; ++page)
                bad += written_pages[page * PAGE_LONGS] != i + page;
            if (bad != 0) wrong = 1;
        }
    }
    check("serial write", wrong, 0);
}

struct construct {
    const char* name;
    void (*run)(int count);
    int delayed;  // its delay is taken off
};
static const struct construct constructs[] = {
    {"parallel", parallel, 1},
    {"for", for_static, 1},
    {"barrier", barrier, 1},
    {"single", single, 1},
    {"critical, contended", critical_contended, 1},
    {"critical with a counter", critical_counter, 1},
    {"lock, contended", lock_contended, 1},
    {"lock, alone", lock_alone, 1},
    {"ordered", ordered, 1},
    {"atomic, contended", atomic_contended, 1},
    {"atomic, alone", atomic_alone, 1},
    {"reduction", reduction, 1},
    {"copyin", copyin, 1},
    {"for dynamic,1 of 128 a thread", for_dynamic, 0},
    {"for dynamic,8 of 128 a thread", for_dynamic_8, 0},
    {"for guided of 128 a thread", for_guided, 0},
    {"parallel, each its own page", own_page, 0},
    {"parallel, all one page", one_page, 0},
    {"write, barrier, read, barrier", neighbour, 0},
    {"serial write, all read 64 pages", serial_write, 0},
};

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double time_of(void (*run)(int count), int count) {
    const double begun = omp_get_wtime();
    run(count);
    return (omp_get_wtime() - begun) * 1e6;
}

// As many constructs as take one sample's time, a multiple of the threads.
static int count_for(void (*run)(int count)) {
    int count = 2 * threads;
    while (count < CONSTRUCTS_MAX && time_of(run, count) < sample_us) count *= 2;
    return count;
}

static void measure(void (*run)(int count), double samples[SAMPLES]) {
    const int count = count_for(run);
    for (int i = 0; i < SAMPLES; ++i) samples[i] = time_of(run, count) / count;
    qsort(samples, SAMPLES, sizeof *samples, by_value);
}

int main(int argc, char** argv) {
    if (argc > 1) sample_us = atof(argv[1]);
    threads = omp_get_max_threads();
    if (threads > THREADS_MAX || sample_us <= 0) {
        fprintf(stderr, "usage: constructs [MICROSECONDS_A_SAMPLE [NAME]], at most %d threads\n",
                THREADS_MAX);
        return 64;
    }
    omp_init_lock(&lock);
    double samples[SAMPLES];
    // A delay of a tenth of a microsecond, as EPCC's.
    do {
        delay_length += 8;
        measure(nothing, samples);
    } while (samples[0] < 0.1);
    const double alone = samples[SAMPLES / 2];
    for (size_t i = 0; i < sizeof constructs / sizeof *constructs; ++i) {
        const struct construct* each = &constructs[i];
        if (argc > 2 && strstr(each->name, argv[2]) == NULL) continue;
        measure(each->run, samples);
        const double off = each->delayed ? alone : 0;
        printf("%s\t%.3f\t%.3f\t%.3f\n", each->name, samples[SAMPLES / 2] - off, samples[0] - off,
               samples[SAMPLES * 9 / 10] - off);
        fflush(stdout);
    }
    return 0;
}
