// SPDX-License-Identifier: BSD-3-Clause
// Locks and critical sections of OpenMP by threads of all nodes: what is counted under them is not
// lost, whichever way they are taken, and whichever thread unsets them.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 400, LOCKS = 97 };

struct guarded {
    omp_lock_t lock;
    long count;
};

static long sums[4];

static void count_each_way(void) {
    static omp_nest_lock_t nest;
    static omp_lock_t tried;
    omp_init_nest_lock(&nest);
    omp_init_lock(&tried);
#pragma omp parallel
    for (int i = 0; i < ROUNDS; ++i) {
#pragma omp critical
        ++sums[0];
#pragma omp critical(named)
        ++sums[1];
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        ++sums[2];
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
        if (i % 10 == 0) {
            while (!omp_test_lock(&tried)) {
            }
            ++sums[3];
            omp_unset_lock(&tried);
        }
    }
    omp_destroy_nest_lock(&nest);
    omp_destroy_lock(&tried);
    const int threads = omp_get_max_threads();
    for (int i = 0; i < 3; ++i) printf("%s\n", sums[i] == (long)ROUNDS * threads ? "all" : "lost");
    printf("%s\n", sums[3] == (long)ROUNDS / 10 * threads ? "all" : "lost");
}

// Neighbours share pages, and are used by different nodes at the same time.
static void count_in_many(void) {
    struct guarded* many = malloc(LOCKS * sizeof *many);
    for (int i = 0; i < LOCKS; ++i) {
        omp_init_lock(&many[i].lock);
        many[i].count = 0;
    }
#pragma omp parallel
    for (int i = 0; i < ROUNDS; ++i) {
        struct guarded* one = &many[(i * 31 + omp_get_thread_num() * 7) % LOCKS];
        omp_set_lock(&one->lock);
        ++one->count;
        omp_unset_lock(&one->lock);
    }
    long sum = 0;
    for (int i = 0; i < LOCKS; ++i) sum += many[i].count;
    printf("%s\n", sum == (long)ROUNDS * omp_get_max_threads() ? "all" : "lost");
    free(many);
}

// A lock that one thread has set another unsets, on another node: a thread that waits for it sees
// what that one wrote.
static void unset_elsewhere(void) {
    static omp_lock_t lock;
    static long written;
    omp_init_lock(&lock);
    int right = 0;
    for (int round = 0; round < 20; ++round) {
#pragma omp parallel reduction(+ : right)
        {
            const int thread = omp_get_thread_num(), last = omp_get_num_threads() - 1;
            if (thread == 0) omp_set_lock(&lock);
#pragma omp barrier
            if (thread == last) {
                written = round + 1;
                omp_unset_lock(&lock);
            } else {
                if (thread != 0) omp_set_lock(&lock);
                if (thread != 0) right += written == round + 1;
                if (thread != 0) omp_unset_lock(&lock);
            }
#pragma omp barrier
            right += omp_test_lock(&lock) != 0;
        }
        omp_unset_lock(&lock);
    }
    printf("%s\n", right == 20 * (omp_get_max_threads() - 1) ? "handed over" : "not handed over");
}

int main(void) {
    count_each_way();
    count_in_many();
    unset_elsewhere();
    return 0;
}
