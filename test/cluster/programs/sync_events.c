// SPDX-License-Identifier: BSD-3-Clause
// Condition variables, barriers, semaphores and once between the threads of a region: a thread that
// is let go on sees what was done before; deadlines are kept by the clock that was named.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { items = 400, slots = 7 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int queue[slots], filled, made, taken;
static long sum;

/// Half of the threads produce, half consume, through a short queue.
static void produce_and_consume(int thread) {
    for (;;) {
        pthread_mutex_lock(&mutex);
        if (thread % 2 == 0) {
            while (filled == slots && made < items) pthread_cond_wait(&not_full, &mutex);
            if (made == items) break;
            queue[filled++] = ++made;
            if (made == items) pthread_cond_broadcast(&not_full);
            pthread_cond_signal(&not_empty);
        } else {
            while (filled == 0 && taken < items) pthread_cond_wait(&not_empty, &mutex);
            if (taken == items) break;
            sum += queue[--filled];
            if (++taken == items) pthread_cond_broadcast(&not_empty);
            pthread_cond_signal(&not_full);
        }
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static mtx_t baton_mutex;
static cnd_t baton_passed;
static int baton;

/// Each thread waits for its turn, round by round, by C11's names.
static void pass_the_baton(int thread, int threads) {
    for (int round = 0; round < 30; ++round) {
        mtx_lock(&baton_mutex);
        while (baton != round * threads + thread) cnd_wait(&baton_passed, &baton_mutex);
        ++baton;
        cnd_broadcast(&baton_passed);
        mtx_unlock(&baton_mutex);
    }
}

static pthread_barrier_t barrier;
static int row[64], serial, barrier_wrong;

static void meet_at_barriers(int thread, int threads) {
    for (int round = 1; round <= 40; ++round) {
        row[thread] = round;
        const int result = pthread_barrier_wait(&barrier);
        for (int t = 0; t < threads; ++t) {
            if (row[t] != round) {
                pthread_mutex_lock(&mutex);
                ++barrier_wrong;
                pthread_mutex_unlock(&mutex);
            }
        }
        if (result == PTHREAD_BARRIER_SERIAL_THREAD) ++serial;
        pthread_barrier_wait(&barrier);
    }
}

static sem_t *tokens, ping, pong;
static int inside, inside_max, ball;

static void share_tokens(void) {
    for (int i = 0; i < 100; ++i) {
        sem_wait(tokens);
        pthread_mutex_lock(&mutex);
        if (++inside > inside_max) inside_max = inside;
        pthread_mutex_unlock(&mutex);
        pthread_mutex_lock(&mutex);
        --inside;
        pthread_mutex_unlock(&mutex);
        sem_post(tokens);
    }
}

static void play(int thread, int threads) {
    for (int i = 0; i < 200; ++i) {
        if (thread == 0) {
            sem_wait(&ping);
            ball = 3 * ball + 1;
            sem_post(&pong);
        } else if (thread == threads - 1) {
            sem_wait(&pong);
            ball = (ball + 7) % 1000003;
            sem_post(&ping);
        }
    }
}

static pthread_once_t first = PTHREAD_ONCE_INIT;
static once_flag first_c11 = ONCE_FLAG_INIT;
static int prepared[3000], once_runs, once_wrong;
static void prepare(void) {
#pragma omp atomic
    ++once_runs;
    usleep(20000);  // others come meanwhile
    for (int i = 0; i < 3000; ++i) prepared[i] = i + 1;
}
static void prepare_c11(void) {
#pragma omp atomic
    once_runs += 100;
}

static void initialize_once(pthread_once_t* on_heap) {
#pragma omp barrier
    pthread_once(&first, prepare);
    call_once(&first_c11, prepare_c11);
    int wrong = 0;
    for (int i = 0; i < 3000; i += 50) wrong += prepared[i] != i + 1;
    if (wrong) once_wrong = wrong;
    pthread_once(on_heap, prepare_c11);
}

static long elapsed_ms(clockid_t clock, struct timespec since) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (now.tv_sec - since.tv_sec) * 1000 + (now.tv_nsec - since.tv_nsec) / 1000000;
}

/// No thread signals: 0 in time and with ETIMEDOUT, else what was wrong.
static int wait_in_vain(clockid_t clock, int named) {
    pthread_cond_t* never = malloc(sizeof *never);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, clock);
    pthread_cond_init(never, &attributes);
    struct timespec begin, until;
    clock_gettime(clock, &begin);
    until = begin;
    until.tv_nsec += 150000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&held);
    const int result = named ? pthread_cond_clockwait(never, &held, clock, &until)
                             : pthread_cond_timedwait(never, &held, &until);
    const int still_held = pthread_mutex_trylock(&held) == EBUSY;
    pthread_mutex_unlock(&held);
    pthread_cond_destroy(never);
    free(never);
    const long ms = elapsed_ms(clock, begin);
    return result != ETIMEDOUT || !still_held || ms < 149 || ms > 5000;
}

static void keep_deadlines(void) {
    int late = 0;
#pragma omp parallel reduction(+ : late)
    {
        late += wait_in_vain(CLOCK_REALTIME, 0) + wait_in_vain(CLOCK_MONOTONIC, 0) +
                wait_in_vain(CLOCK_MONOTONIC, 1);
        sem_t empty;
        struct timespec now;
        sem_init(&empty, 0, 0);
        clock_gettime(CLOCK_REALTIME, &now);
        late += sem_timedwait(&empty, &now) != -1 || errno != ETIMEDOUT;
        late += sem_trywait(&empty) != -1 || errno != EAGAIN;
        sem_destroy(&empty);
    }
    printf("deadlines: %d wrong\n", late);
}

static sem_t from_handler;
static void post(int number) {
    (void)number;
    sem_post(&from_handler);
}

/// Only a handler of the waiting thread's own process lets it go on.
static void wait_for_a_signal(void) {
    const struct itimerval soon = {{0, 0}, {0, 50000}};
    sem_init(&from_handler, 0, 0);
    signal(SIGALRM, post);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (sem_wait(&from_handler) != 0) {
    }
    printf("the handler has posted\n");
}

int main(void) {
    const int threads = omp_get_max_threads();
    pthread_once_t* on_heap = calloc(1, sizeof *on_heap);
    int value = 0;
    tokens = malloc(sizeof *tokens);
    sem_init(tokens, 0, 2);
    sem_init(&ping, 0, 1);
    sem_init(&pong, 0, 0);
    pthread_barrier_init(&barrier, NULL, threads);
    mtx_init(&baton_mutex, mtx_plain);
    cnd_init(&baton_passed);
#pragma omp parallel
    {
        const int thread = omp_get_thread_num();
        if (threads > 1) produce_and_consume(thread);
        pass_the_baton(thread, threads);
        meet_at_barriers(thread, threads);
        share_tokens();
        if (threads > 1) play(thread, threads);
        initialize_once(on_heap);
    }
    sem_getvalue(tokens, &value);
    printf("sum %ld of %d, left %d\n", sum, taken, filled);
    printf("baton %d\n", baton == 30 * threads);
    printf("barrier: %d serial, %d wrong\n", serial, barrier_wrong);
    printf("tokens %d, inside %d, ball %d\n", value, inside_max >= 1 && inside_max <= 2, ball);
    printf("once %d, wrong %d\n", once_runs, once_wrong);

    // New ones in the same memory.
    *on_heap = PTHREAD_ONCE_INIT;
    first = PTHREAD_ONCE_INIT;
#pragma omp parallel
    {
        pthread_once(on_heap, prepare_c11);
        pthread_once(&first, prepare_c11);
    }
    printf("once again %d\n", once_runs);
    sem_destroy(tokens);
    sem_init(tokens, 0, 5);
    sem_getvalue(tokens, &value);
    printf("new semaphore %d\n", value);
    sem_init(tokens, 0, INT_MAX);
    const int full = sem_post(tokens) == -1 && errno == EOVERFLOW;
    printf("full %d\n", full);
    keep_deadlines();
    wait_for_a_signal();
    return 0;
}
