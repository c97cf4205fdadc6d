// SPDX-License-Identifier: BSD-3-Clause
// Role: hiroba-perf-openmp, which `hiroba perf openmp` runs with libgomp and on nodes of hiroba:
// what each construct of OpenMP costs. It can be run alone, with any runtime. Usage:
// hiroba-perf-openmp --list | MICROSECONDS [TEXT]
//   measures the rows whose names contain TEXT, each SAMPLES times for MICROSECONDS; fewer times,
//   SAMPLES_MIN at least, where the machine has become SLOWER_MAX times as slow as at first.
// Prints lines of words between tabs: group and name of each row with --list; else
//   row GROUP NAME PROCESSES SAMPLE...   PROCESSES ran its bodies; samples in microseconds
//   end ROWS THREADS PROCESSES           of the whole team
// Invariant: a figure is printed only if every body of every sample was run as often as it had to
// be, by every thread that had to, and if all values that bodies and verify() read were right.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/openmp/program/rows.h"

enum {
    DELAY_SAMPLE_US = 500,
    SAMPLES = 15,
    SAMPLES_MIN = 5,
    SLOWER_MAX = 10,
    CONSTRUCTS_MAX = 1 << 20,
    EXIT_WRONG = 70,
    EXIT_USAGE = 64
};

int threads;
long run_base = 1;
struct account account;
long pages[2][THREADS_MAX * PAGE_LONGS] __attribute__((aligned(4096)));

static int delay_length;
static double sample_us;
static const char* row_now = "";

/// What the threads say of themselves after a run.
static struct {
    struct account account;
    long process;
    int team;
} records[THREADS_MAX];
static int has_run[THREADS_MAX];  // a body of the present row

struct group {
    const char* name;
    const struct row* rows;
};
static const struct group groups[] = {{"synchronization", sync_rows},
                                      {"shared memory", memory_rows},
                                      {"loops of 128 iterations a thread", loop_rows},
                                      {"tasks", task_rows}};

__attribute__((noinline)) void delay(void) {
    volatile float sum = 0;
    for (int i = 0; i < delay_length; ++i) sum += (float)i;
}

static void fail(const char* what, double got, double wanted) {
    printf("hiroba-perf-openmp: %s: %s %.17g instead of %.17g\n", row_now, what, got, wanted);
    exit(EXIT_WRONG);
}

// The kernel's number: getpid() is node 0's everywhere.
static int process(void) {
    char text[32] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 ? atoi(text) : -1;
}

static void take_accounts(void) {
#pragma omp parallel
    {
        const int thread = omp_get_thread_num();
        records[thread].account = account;
        records[thread].process = process();
        records[thread].team = omp_get_num_threads();
        memset(&account, 0, sizeof account);
    }
}

static void judge(long executed, unsigned is) {
    take_accounts();
    long sum = 0;
    for (int t = 0; t < threads; ++t) {
        const struct account* each = &records[t].account;
        if (records[t].team != threads) fail("a team of", records[t].team, threads);
        if (each->wrong != 0) fail("a thread found", each->got, each->wanted);
        if ((is & EVERYONE) != 0 && each->executed == 0) fail("a thread ran bodies:", 0, 1);
        if (each->executed != 0) has_run[t] = 1;
        sum += each->executed;
    }
    if (sum != executed) fail("bodies run:", (double)sum, (double)executed);
}

/// Measures the threads with `chosen`, or all.
static int processes_of(const int* chosen) {
    int count = 0;
    for (int t = 0; t < threads; ++t) {
        int is_new = chosen == NULL || chosen[t];
        for (int before = 0; before < t && is_new; ++before) {
            const int counts = chosen == NULL || chosen[before];
            if (counts && records[before].process == records[t].process) is_new = 0;
        }
        count += is_new;
    }
    return count;
}

/// Executes `count` constructs. @return microseconds
static double time_of(const struct row* row, long count, long* executed) {
    const double begun = omp_get_wtime();
    *executed = row->run(count);
    const double us = (omp_get_wtime() - begun) * 1e6;
    if (row->verify != NULL) row->verify(count);
    judge(*executed, row->is);
    run_base += count;
    return us;
}

/// As many as take one sample's time, a multiple of the threads.
static long count_for(const struct row* row) {
    const long most = (row->is & FEW) != 0 ? BODIES_MAX / threads : CONSTRUCTS_MAX;
    long count = 2 * threads, executed;
    while (count * 2 <= most && time_of(row, count, &executed) < sample_us) count *= 2;
    return count;
}

/// @return how many samples there are
static int measure(const struct row* row, double samples[SAMPLES]) {
    memset(has_run, 0, sizeof has_run);
    const long count = count_for(row);
    double spent_us = 0;
    for (int i = 0; i < SAMPLES; ++i) {
        if (i >= SAMPLES_MIN && spent_us > SLOWER_MAX * SAMPLES * sample_us) return i;
        long executed;
        const double us = time_of(row, count, &executed);
        samples[i] = us / (double)((row->is & EACH_BODY) != 0 ? executed : count);
        spent_us += us;
    }
    return SAMPLES;
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}
static long delays(long count) {
    for (long i = 0; i < count; ++i) body();
    return count;
}
/// Makes the delay a tenth of a microsecond. @return its least, which no sample is below: a median
/// of a busy machine would be more than the delay in another's least sample.
static double make_delay(void) {
    static const struct row alone = {"delay", delays, NULL, 0};
    double samples[SAMPLES];
    const double asked_us = sample_us;
    if (sample_us > DELAY_SAMPLE_US) sample_us = DELAY_SAMPLE_US;
    do {
        delay_length += 8;
        const int taken = measure(&alone, samples);
        qsort(samples, (size_t)taken, sizeof *samples, by_value);
    } while (samples[0] < 0.1);
    sample_us = asked_us;
    return samples[0];
}

static void print_row(const char* group, const struct row* row, double delay_us) {
    double samples[SAMPLES];
    row_now = row->name;
    const int taken = measure(row, samples);
    printf("row\t%s\t%s\t%d", group, row->name, processes_of(has_run));
    for (int i = 0; i < taken; ++i)
        printf("\t%.4f", samples[i] - ((row->is & DELAYED) != 0 ? delay_us : 0));
    printf("\n");
    fflush(stdout);
}

int main(int argc, char** argv) {
    const int lists = argc == 2 && strcmp(argv[1], "--list") == 0;
    sample_us = argc > 1 ? atof(argv[1]) : 0;
    threads = omp_get_max_threads();
    if (!lists && (argc > 3 || !(sample_us > 0) || threads > THREADS_MAX)) {
        fprintf(stderr,
                "usage: hiroba-perf-openmp --list | MICROSECONDS [TEXT], at most %d threads\n",
                THREADS_MAX);
        return EXIT_USAGE;
    }
    omp_set_dynamic(0);
    const double delay_us = lists ? 0 : make_delay();
    int rows = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; ++i) {
        for (const struct row* row = groups[i].rows; row->name != NULL; ++row) {
            if (argc > 2 && strstr(row->name, argv[2]) == NULL) continue;
            ++rows;
            if (lists) {
                printf("%s\t%s\n", groups[i].name, row->name);
            } else {
                print_row(groups[i].name, row, delay_us);
            }
        }
    }
    if (!lists) printf("end\t%d\t%d\t%d\n", rows, threads, processes_of(NULL));
    return 0;
}
