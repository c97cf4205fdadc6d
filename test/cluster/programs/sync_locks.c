// SPDX-License-Identifier: BSD-3-Clause
// Mutexes of all types, spin locks, read-write locks and C11 mutexes, made statically and at run
// time, shared by the threads of a region: they exclude, and what they protect is seen.
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { rounds = 300, cells = 2000 };

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers_first = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_spinlock_t spin;
static mtx_t c11, c11_recursive;
static long plain_count, recursive_count, checked_count, spin_count, c11_count, tried_count;
static long table[cells], torn, heap_count;

static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += ms % 1000 * 1000000;
    time.tv_sec += ms / 1000 + time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

/// Rests now and then between reading and writing, so that all threads are under way at once, and
/// one that the lock does not keep out comes in between.
static void add_slowly(long* count) {
    const long seen = *(volatile long*)count;
    if (seen % 50 == 0) usleep(500);
    *(volatile long*)count = seen + 1;
}

static void count_under_every_lock(pthread_mutex_t* on_heap) {
#pragma omp barrier
    for (int i = 0; i < rounds; ++i) {
        pthread_mutex_lock(&plain);
        add_slowly(&plain_count);
        pthread_mutex_unlock(&plain);

        pthread_mutex_lock(&recursive);
        pthread_mutex_lock(&recursive);
        ++recursive_count;
        pthread_mutex_unlock(&recursive);
        ++recursive_count;
        pthread_mutex_unlock(&recursive);

        pthread_mutex_lock(on_heap);
        ++heap_count;
        pthread_mutex_unlock(on_heap);

        if (i % 4 == 0) {
            while (pthread_mutex_trylock(&checked) != 0) sched_yield();
            ++tried_count;
            pthread_mutex_unlock(&checked);
        }
    }
}

/// Alone, one kind at a time: nothing else keeps the threads apart.
static void count_under_one_lock(void) {
#pragma omp barrier
    for (int i = 0; i < 2 * rounds; ++i) {
        pthread_spin_lock(&spin);
        add_slowly(&spin_count);
        pthread_spin_unlock(&spin);
    }
#pragma omp barrier
    for (int i = 0; i < 2 * rounds; ++i) {
        mtx_lock(&c11);
        add_slowly(&c11_count);
        mtx_unlock(&c11);
    }
#pragma omp barrier
}

static void read_and_write_a_table(int thread) {
    for (int i = 0; i < 2 * rounds; ++i) {
        if ((i + thread) % 5 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            for (int c = 0; c < cells; c += 97) ++table[c];
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_rdlock(&rwlock);
            pthread_rwlock_rdlock(&rwlock);
            for (int c = 0; c < cells; c += 97) torn += table[c] != table[0];
            pthread_rwlock_unlock(&rwlock);
            pthread_rwlock_unlock(&rwlock);
        }
    }
}

static void say_what_they_answer(void) {
    struct timespec soon = in_ms(CLOCK_REALTIME, 20), bad = soon;
    bad.tv_nsec = 1000000000;
#pragma omp parallel num_threads(omp_get_max_threads())
    {
        const int last = omp_get_num_threads() - 1;
        if (omp_get_thread_num() == last) {
            pthread_mutex_lock(&plain);
            pthread_mutex_lock(&checked);
            pthread_mutex_lock(&recursive);
            pthread_rwlock_wrlock(&rwlock);
            printf("again %d, destroy %d\n", pthread_mutex_lock(&checked) == EDEADLK,
                   pthread_mutex_destroy(&checked) == EBUSY);
            printf("writer again %d\n", pthread_rwlock_wrlock(&rwlock) == EDEADLK);
            fflush(stdout);
        }
#pragma omp barrier
        if (omp_get_thread_num() == 0) {
            struct timespec monotonic = in_ms(CLOCK_MONOTONIC, 20);
            printf("busy %d %d %d\n", pthread_mutex_trylock(&plain) == EBUSY,
                   pthread_mutex_trylock(&recursive) == EBUSY,
                   pthread_rwlock_tryrdlock(&rwlock) == EBUSY);
            printf("late %d %d %d %d\n", pthread_mutex_timedlock(&plain, &soon) == ETIMEDOUT,
                   pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &monotonic) == ETIMEDOUT,
                   pthread_rwlock_timedrdlock(&rwlock, &soon) == ETIMEDOUT,
                   pthread_rwlock_timedwrlock(&rwlock, &soon) == ETIMEDOUT);
            printf("no time %d\n", pthread_mutex_timedlock(&plain, &bad) == EINVAL);
            printf("not mine %d %d\n", pthread_mutex_unlock(&checked) == EPERM,
                   pthread_mutex_unlock(&recursive) == EPERM);
            fflush(stdout);
        }
#pragma omp barrier
        if (omp_get_thread_num() == last) {
            pthread_mutex_unlock(&plain);
            pthread_mutex_unlock(&checked);
            pthread_mutex_unlock(&recursive);
            pthread_rwlock_unlock(&rwlock);
        }
    }
    printf("free %d %d\n", pthread_mutex_trylock(&plain), pthread_rwlock_trywrlock(&rwlock));
    pthread_mutex_unlock(&plain);
    pthread_rwlock_unlock(&rwlock);
}

/// A mutex whose memory was another, recursive one, a moment ago.
static void reuse_memory(void) {
    int wrong = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : wrong)
    for (int i = 0; i < 400; ++i) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes,
                                  i % 2 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_ERRORCHECK);
        pthread_mutex_t* mutex = malloc(sizeof *mutex);
        memset(mutex, 0x5A, sizeof *mutex);
        pthread_mutex_init(mutex, &attributes);
        wrong += pthread_mutex_lock(mutex) != 0;
        wrong += pthread_mutex_lock(mutex) != (i % 2 ? 0 : EDEADLK);
        wrong += i % 2 && pthread_mutex_unlock(mutex) != 0;
        wrong += pthread_mutex_unlock(mutex) != 0;
        wrong += pthread_mutex_destroy(mutex) != 0;
        free(mutex);
    }
    printf("reused memory: %d wrong\n", wrong);
}

int main(void) {
    pthread_mutex_t* on_heap = malloc(sizeof *on_heap);
    pthread_mutex_init(on_heap, NULL);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    mtx_init(&c11, mtx_plain);
    mtx_init(&c11_recursive, mtx_recursive | mtx_timed);
#pragma omp parallel
    {
        count_under_every_lock(on_heap);
        count_under_one_lock();
        read_and_write_a_table(omp_get_thread_num());
        pthread_mutex_lock(&checked);
        ++checked_count;
        pthread_mutex_unlock(&checked);
        pthread_rwlock_wrlock(&writers_first);
        ++checked_count;
        pthread_rwlock_unlock(&writers_first);
    }
    printf("%ld %ld %ld %ld %ld %ld\n", plain_count, recursive_count, heap_count, spin_count,
           c11_count, tried_count);
    printf("table %ld, torn %ld, checked %d\n", table[97], torn,
           checked_count > 0 && checked_count <= 2 * omp_get_max_threads());
    say_what_they_answer();
    struct timespec soon = in_ms(CLOCK_REALTIME, 5000);
    const int twice = mtx_lock(&c11_recursive) == thrd_success &&
                      mtx_timedlock(&c11_recursive, &soon) == thrd_success &&
                      mtx_trylock(&c11_recursive) == thrd_success;
    printf("c11 %d\n", twice);
    reuse_memory();
    return 0;
}
