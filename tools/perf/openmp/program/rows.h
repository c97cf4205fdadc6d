/* SPDX-License-Identifier: BSD-3-Clause
 * Role: what the rows of hiroba-perf-openmp are made of. A row is one construct: a function that
 * executes it `count` times, in all of which each body is counted by the thread that ran it.
 * Invariant: an ordinary OpenMP program; nothing here knows of hiroba. */
#ifndef HIROBA_PERF_OPENMP_ROWS_H
#define HIROBA_PERF_OPENMP_ROWS_H

#include <omp.h>

enum {
    THREADS_MAX = 256,
    PAGE_LONGS = 512,
    BODIES_MAX = 1 << 16  // tasks of one run, each with a cell of its own
};

struct row {
    const char* name;
    /// Executes `count` constructs. @return how many bodies all threads together have to have run
    long (*run)(long count);
    /// Looks at what they left in memory, untimed; may be NULL.
    void (*verify)(long count);
    unsigned is;
};
/// What a row is, beside its function.
enum {
    DELAYED = 1,    // its bodies last a delay, which is taken off
    EVERYONE = 2,   // each thread of the team has to run a body
    EACH_BODY = 4,  // its figure is time for one body; else for one construct
    FEW = 8         // at most BODIES_MAX / threads constructs
};

/// Rows that end with one without a name.
extern const struct row sync_rows[], memory_rows[], loop_rows[], task_rows[];

extern int threads;
/// Differs by at least `count` from run to run: what a run before left is seen to be old.
extern long run_base;

/// The thread's own account of the present run.
struct account {
    long executed;
    long wrong;
    double got, wanted;  // of the first that was wrong
};
extern struct account account;
#pragma omp threadprivate(account)

/// Lasts about a tenth of a microsecond, as EPCC's.
void delay(void);

static inline void body(void) {
    ++account.executed;
    delay();
}
static inline void expect(double got, double wanted) {
    if (got == wanted) return;
    if (account.wrong++ != 0) return;
    account.got = got;
    account.wanted = wanted;
}

/// A page for each thread, of which constructs use two in turn: who reads the one is not overtaken
/// by who writes the other.
extern long pages[2][THREADS_MAX * PAGE_LONGS];
static inline long* page_of(long turn, int thread) {
    return &pages[turn & 1][(long)thread * PAGE_LONGS];
}
static inline int neighbour_of(int thread) { return (thread + 1) % threads; }

#endif
