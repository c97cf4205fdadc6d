// SPDX-License-Identifier: BSD-3-Clause
// Threads that one thread of a region makes and another, of another node, joins or detaches: what
// they return and have written, what timed joins answer; also of C11.
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

enum { threads = 4, rounds = 12, words = 4000 };

static pthread_t made[threads];
static thrd_t made_by_c11[threads];
static int* written[threads];
static int open_gate[threads], left;

static void* write_words(void* argument) {
    const int me = (int)(long)argument;
    for (int i = 0; i < words; ++i) written[me][i] += i + me;
    return &written[me][me];
}

static void* wait_at_gate(void* argument) {
    int* const gate = argument;
    while (__atomic_load_n(gate, __ATOMIC_ACQUIRE) == 0) thrd_yield();
    return gate;
}

static int add_one(void* argument) {
    ++*(int*)argument;
    return 40 + *(int*)argument;
}

static void* leave(void* argument) {
    __atomic_fetch_add(&left, 1, __ATOMIC_SEQ_CST);
    return argument;
}

static struct timespec after(clockid_t clock, long ms) {
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += ms * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static void join_each_other(void) {
    int right = 0;
#pragma omp parallel num_threads(threads) reduction(+ : right)
    {
        const int me = omp_get_thread_num(), next = (me + 1) % threads;
        written[me] = calloc(words, sizeof(int));
        for (int round = 1; round <= rounds; ++round) {
            pthread_create(&made[me], NULL, &write_words, (void*)(long)me);
#pragma omp barrier
            void* result = NULL;
            right += pthread_join(made[next], &result) == 0 && result == &written[next][next];
            for (int i = 0; i < words; ++i) right += written[next][i] == round * (i + next);
#pragma omp barrier
        }
    }
    printf("joined: %d\n", right);
}

static void join_in_time(void) {
    int answers[threads][5];
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num(), next = (me + 2) % threads;
        int* const answer = answers[me];
        pthread_create(&made[me], NULL, &wait_at_gate, &open_gate[me]);
#pragma omp barrier
        void* result = NULL;
        answer[0] = pthread_tryjoin_np(made[next], &result);
        struct timespec at = after(CLOCK_REALTIME, 20);
        answer[1] = pthread_timedjoin_np(made[next], &result, &at);
        at = after(CLOCK_MONOTONIC, 20);
        answer[2] = pthread_clockjoin_np(made[next], &result, CLOCK_MONOTONIC, &at);
        __atomic_store_n(&open_gate[next], 1, __ATOMIC_RELEASE);
        at = after(CLOCK_REALTIME, 20000);
        answer[3] = pthread_timedjoin_np(made[next], &result, &at);
        answer[4] = result == &open_gate[next];
#pragma omp barrier
    }
    for (int i = 0; i < threads; ++i)
        printf("%s %s %s %d %d\n", strerrorname_np(answers[i][0]), strerrorname_np(answers[i][1]),
               strerrorname_np(answers[i][2]), answers[i][3], answers[i][4]);
}

static void join_by_c11(void) {
    int value[threads] = {0}, sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
        const int me = omp_get_thread_num(), next = (me + 3) % threads;
        value[me] = me;
        thrd_create(&made_by_c11[me], &add_one, &value[me]);
#pragma omp barrier
        int result = 0;
        sum += thrd_join(made_by_c11[next], &result) == thrd_success ? result : 1000;
#pragma omp barrier
        pthread_create(&made[me], NULL, &leave, NULL);
#pragma omp barrier
        sum += pthread_detach(made[next]);
    }
    while (__atomic_load_n(&left, __ATOMIC_SEQ_CST) < threads) thrd_yield();
    printf("by C11: %d %d, left %d\n", sum, value[1] + value[2], left);
}

int main(void) {
    join_each_other();
    join_in_time();
    join_by_c11();
    return 0;
}
