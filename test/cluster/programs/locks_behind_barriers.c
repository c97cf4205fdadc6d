// SPDX-License-Identifier: BSD-3-Clause
// A thread that has passed a barrier hands over to a program thread, whose node may still be inside
// of it, by a mutex with a condition, by a semaphore and by a read-write lock: the program thread
// must see what all wrote ahead of the barrier.
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { words = 65536, steps = 48, kinds = 3 };
static int data[words], posted, seen, stale;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t there, back;

static void post(int step) {
    if (step % kinds == 1) {
        sem_post(&there);
    } else if (step % kinds == 2) {
        pthread_rwlock_wrlock(&rwlock);
        posted = step;
        pthread_rwlock_unlock(&rwlock);
    } else {
        pthread_mutex_lock(&mutex);
        posted = step;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
}

static void await(int step) {
    if (step % kinds == 1) {
        sem_wait(&there);
    } else if (step % kinds == 2) {
        for (int come = 0; !come;) {
            pthread_rwlock_rdlock(&rwlock);
            come = posted == step;
            pthread_rwlock_unlock(&rwlock);
        }
    } else {
        pthread_mutex_lock(&mutex);
        while (posted != step) pthread_cond_wait(&changed, &mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void* read_all(void* unused) {
    for (int step = 1; step <= steps; ++step) {
        await(step);
        for (int w = 0; w < words; w += 61) stale += data[w] != step;
        seen = step;
        sem_post(&back);
    }
    return unused;
}

int main(void) {
    pthread_t reader;
    sem_init(&there, 0, 0);
    sem_init(&back, 0, 0);
    pthread_create(&reader, NULL, read_all, NULL);
#pragma omp parallel
    for (int step = 1; step <= steps; ++step) {
        const int me = omp_get_thread_num(), all = omp_get_num_threads();
        for (int w = me; w < words; w += all) data[w] = step;
#pragma omp barrier
        if (me == all - 1) {
            post(step);
            sem_wait(&back);
        }
#pragma omp barrier
    }
    pthread_join(reader, NULL);
    printf("%d stale words in %d steps\n", stale, seen);
    return stale != 0;
}
