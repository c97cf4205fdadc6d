// SPDX-License-Identifier: BSD-3-Clause
// A program of one compiler with a library of the other's (two_compilers_library.c): regions of
// both have the same threads, and mutual exclusion and tasks go across.
#include <omp.h>
#include <stdio.h>

#include "verdict.h"

extern int library_threads(int* numbers);
extern long library_sum(int count);
extern void library_add(omp_lock_t* lock, long* to, long value);
extern void library_tasks(long* done, int count);
extern void library_share(int* hits, int count);
extern int library_single(void);

int main(void) {
    int threads = 0, own[64] = {0}, its[64] = {0}, hits[500] = {0};
#pragma omp parallel
    {
#pragma omp master
        threads = omp_get_num_threads();
        own[omp_get_thread_num() % 64]++;
    }
    check("as many threads", library_threads(its) == threads);
    int right = 1;
    for (int t = 0; t < 64; t++) right &= own[t] == its[t];
    check("the same numbers", right);
    check("a reduction", library_sum(1000) == 499500);

    omp_lock_t lock;
    omp_init_lock(&lock);
    long total = 0;
#pragma omp parallel
    for (int i = 0; i < 30; i++) {
        library_add(&lock, &total, 1);
        omp_set_lock(&lock);
        total += 1000;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
    check("a lock of both", total == 30030L * threads);

    // What the library has of the region that the program is in.
    int singles = 0;
#pragma omp parallel reduction(+ : singles)
    {
        library_share(hits, 500);
        singles += library_single();
#pragma omp for schedule(dynamic, 4)
        for (int i = 0; i < 500; i++) hits[i] += 10;
    }
    right = 1;
    for (int i = 0; i < 500; i++) right &= hits[i] == 11;
    check("loops of both in one region", right);
    check("single is one thread's", singles == 1);
    long done = 0, seen = -1;
#pragma omp parallel
#pragma omp master
    {
#pragma omp task shared(done)
        {
#pragma omp atomic
            done += 1000;
        }
        library_tasks(&done, 50);
#pragma omp taskwait
        seen = done;
    }
    check("taskwait waits for tasks of both", seen == 1000 + 1225);
    return wrong;
}
