// SPDX-License-Identifier: BSD-3-Clause
// One of each construct a tool hears of; what it prints does not depend on the number of threads.
#include <omp.h>
#include <stdio.h>

enum { tasks = 96, rounds = 3 };

static long counts[tasks];
static omp_lock_t lock;
static omp_nest_lock_t nested;

static void pass_time(void) {
    const double until = omp_get_wtime() + 3e-4;
    while (omp_get_wtime() < until) {
    }
}

static void work_a_while(int i) {
    pass_time();
    counts[i]++;
}

static void loops(void) {
    long sum = 0, taken = 0;
#pragma omp parallel
    {
#pragma omp for reduction(+ : sum)
        for (int i = 0; i < 100; ++i) sum += i;
#pragma omp for schedule(dynamic, 7) reduction(+ : taken)
        for (int i = 0; i < 100; ++i) taken += 1;
#pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < 8; ++i) {
#pragma omp ordered
            taken += i;
        }
#pragma omp sections
        {
#pragma omp section
            taken += 1;
#pragma omp section
            counts[0] += 0;
        }
    }
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
    for (int i = 0; i < 10; ++i) sum += 1;
    printf("loops %ld %ld\n", sum, taken);
}

static void blocks(void) {
    int singles = 0, copied = 0, masters = 0;
    long named = 0, locked = 0, twice = 0;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nested);
#pragma omp parallel
    {
        int own = 0;
#pragma omp single
        singles++;
#pragma omp single copyprivate(own)
        own = 5;
#pragma omp critical
        copied += own == 5;
#pragma omp critical(named)
        named++;
        omp_set_lock(&lock);
        locked++;
        omp_unset_lock(&lock);
        while (!omp_test_lock(&lock)) {
        }
        locked++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nested);
        omp_set_nest_lock(&nested);
        twice++;
        omp_unset_nest_lock(&nested);
        omp_unset_nest_lock(&nested);
#pragma omp barrier
#pragma omp master
        masters++;
#pragma omp flush
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nested);
    printf("blocks %d %d %d\n", singles, masters,
           named == copied && locked == 2 * copied && twice == copied);
}

static void explicit_tasks(void) {
    int chain = 0;
    long undeferred = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < tasks; ++i) {
#pragma omp task firstprivate(i)
            work_a_while(i);
        }
#pragma omp taskwait
        for (int i = 0; i < 8; ++i) {
#pragma omp task depend(inout : chain) firstprivate(i)
            chain = 2 * chain + i;
        }
#pragma omp taskgroup
        {
#pragma omp task
            {
#pragma omp task
                work_a_while(1);
#pragma omp taskyield
            }
        }
#pragma omp taskloop grainsize(4)
        for (int i = 0; i < 32; ++i) work_a_while(i);
        for (int i = 0; i < 4; ++i) {
#pragma omp task if (0) shared(undeferred)
            undeferred += i;
        }
    }
    long sum = 0;
    for (int i = 0; i < tasks; ++i) sum += counts[i];
    printf("tasks %ld %d %ld\n", sum, chain, undeferred);
}

static void detached(void) {
    long ended = 0;
#pragma omp parallel
#pragma omp single
    {
        omp_event_handle_t events[16];
        for (int i = 0; i < 16; ++i) {
            omp_event_handle_t event;
#pragma omp task detach(event) shared(ended)
            {
                pass_time();
#pragma omp atomic
                ended++;
            }
            events[i] = event;
            if (i % 2 == 0) omp_fulfill_event(event);
        }
        pass_time();
        for (int i = 1; i < 16; i += 2) omp_fulfill_event(events[i]);
#pragma omp taskwait
    }
    printf("detached %ld\n", ended);
}

static void regions_inside(void) {
    long sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel reduction(+ : sum)
    {
        long own = 0;
#pragma omp parallel num_threads(2) reduction(+ : own)
        own += omp_get_level();
        sum += own > 0;
#pragma omp parallel if (0) reduction(+ : sum)
        sum += 0;
    }
    printf("inside %d\n", sum == omp_get_max_threads());
}

static void cancelled(void) {
    int first = 0;
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < 1000; ++i) {
            if (i == 3) {
                first = 1;
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
    }
    printf("cancelled %d\n", first);
}

int main(void) {
    for (int i = 0; i < rounds; ++i) loops();
    blocks();
    explicit_tasks();
    detached();
    regions_inside();
    cancelled();
    return 0;
}
