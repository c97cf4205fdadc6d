// SPDX-License-Identifier: BSD-3-Clause
// The library of two_compilers.c.
#include <omp.h>

int library_threads(int* numbers) {
    int threads = 0;
#pragma omp parallel
    {
#pragma omp master
        threads = omp_get_num_threads();
        numbers[omp_get_thread_num() % 64]++;
    }
    return threads;
}

long library_sum(int count) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 7)
    for (int i = 0; i < count; i++) sum += i;
    return sum;
}

void library_add(omp_lock_t* lock, long* to, long value) {
    omp_set_lock(lock);
    *to += value;
    omp_unset_lock(lock);
}

void library_share(int* hits, int count) {
#pragma omp for schedule(dynamic, 3)
    for (int i = 0; i < count; i++) hits[i]++;
}

int library_single(void) {
    int mine = 0;
#pragma omp single
    mine = 1;
    return mine;
}

void library_tasks(long* done, int count) {
    for (int i = 0; i < count; i++)
#pragma omp task firstprivate(i, done)
    {
        volatile double x = 0;
        for (int k = 0; k < 3000; k++) x = x + k;
#pragma omp atomic
        *done += i;
    }
}
