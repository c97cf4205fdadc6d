// SPDX-License-Identifier: BSD-3-Clause
// Threads the program makes: their stacks are memory of all nodes, of the size and at the place the
// program asks for; they open regions; they end and leave nothing behind.
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

enum { values = 20000, kib = 1024, mib = 1024 * 1024 };

/// A region whose shared variables lie on this thread's stack.
static long sum_in_region(int seed, int* threads) {
    long table[values];
    long sum = 0;
    int members = 0;
#pragma omp parallel
    {
#pragma omp for schedule(static, 100)
        for (int i = 0; i < values; ++i) table[i] = (long)i * seed;
#pragma omp for reduction(+ : sum) schedule(dynamic, 500)
        for (int i = 0; i < values; ++i) sum += table[values - 1 - i];
#pragma omp critical
        ++members;
    }
    if (threads != NULL) *threads = members;
    return sum;
}

static void* open_regions(void* sum) {
    int threads = 0;
    for (int seed = 1; seed <= 5; ++seed) *(long*)sum += sum_in_region(seed, &threads);
    printf("region of %d\n", threads);
    return &sum_in_region;
}

static void regions_in_a_thread(void) {
    pthread_t thread;
    long sum = 0;
    void* result = NULL;
    pthread_create(&thread, NULL, open_regions, &sum);
    pthread_join(thread, &result);
    printf("regions: sum %ld, result %d\n", sum, result == &sum_in_region);
}

static void* add_sums(void* sum) {
    for (int seed = 1; seed <= 8; ++seed) *(long*)sum += sum_in_region(seed, NULL);
    return NULL;
}

/// Several threads and main open regions at once: a region that finds the team taken has one
/// thread.
static void regions_at_once(void) {
    pthread_t threads[3];
    long sums[4] = {0};
    for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, add_sums, &sums[i]);
    add_sums(&sums[3]);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    printf("at once: %d\n", sums[0] == sums[1] && sums[1] == sums[2] && sums[2] == sums[3]);
}

static sem_t shown, changed;
static int* volatile shown_local;

static void* show_local(void* nothing) {
    int local[3000] = {0};
    shown_local = local;
    sem_post(&shown);
    sem_wait(&changed);
    long sum = 0;
    for (int i = 0; i < 3000; ++i) sum += local[i];
    printf("local: sum %ld\n", sum);
    return nothing;
}

/// Threads of all nodes write into another thread's local variable.
static void write_to_a_stack(void) {
    pthread_t thread;
    sem_init(&shown, 0, 0);
    sem_init(&changed, 0, 0);
    pthread_create(&thread, NULL, show_local, NULL);
    sem_wait(&shown);
    int* const local = shown_local;
#pragma omp parallel for schedule(static, 7)
    for (int i = 0; i < 3000; ++i) local[i] = i;
    sem_post(&changed);
    pthread_join(thread, NULL);
}

static int descend(int depth) {
    volatile char frame[16 * kib];
    frame[0] = (char)depth;
    frame[sizeof frame - 1] = 1;
    return depth == 0 ? 0 : descend(depth - 1) + frame[sizeof frame - 1];
}

static void* use_stack(void* mebibytes) {
    pthread_attr_t attributes;
    size_t bytes = 0;
    void* address = NULL;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &address, &bytes);
    pthread_attr_destroy(&attributes);
    const size_t wanted = *(size_t*)mebibytes * mib;
    const int inside = (char*)&bytes > (char*)address && (char*)&bytes < (char*)address + bytes;
    const int depth = (int)(wanted / (16 * kib) * 9 / 10);
    printf("stack: %d %d %d\n", bytes >= wanted, inside, descend(depth) == depth);
    return NULL;
}

static void sizes_and_places(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    size_t mebibytes = 24;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, mebibytes * mib);
    pthread_create(&thread, &attributes, use_stack, &mebibytes);
    pthread_join(thread, NULL);

    mebibytes = 1;
    void* const place = aligned_alloc(4096, 2 * mib);
    memset(place, 1, 2 * mib);
    pthread_attr_setstack(&attributes, place, 2 * mib);
    for (int i = 0; i < 20; ++i) {
        pthread_create(&thread, &attributes, use_stack, &mebibytes);
        const int there = (char*)thread > (char*)place && (char*)thread < (char*)place + 2 * mib;
        pthread_join(thread, NULL);
        if (!there) printf("elsewhere\n");
    }
    pthread_attr_destroy(&attributes);
    free(place);
}

static sem_t ended;
static __thread long own = 7;

static void* post(void* times) {
    own += *(int*)times;
    if (own != 7 + *(int*)times) printf("thread-local %ld\n", own);
    sem_post(&ended);
    return NULL;
}

static int post_c11(void* times) { return post(times) != NULL; }

/// More stacks than the address space holds at once.
static void come_and_go(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    int times = 4, made = 0;
    sem_init(&ended, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * mib);
    for (int i = 0; i < 600; ++i) {
        made += pthread_create(&thread, &attributes, post, &times) == 0;
        sem_wait(&ended);
        if (i % 2)
            pthread_join(thread, NULL);
        else
            pthread_detach(thread);
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 300; ++i) {
        made += pthread_create(&thread, &attributes, post, &times) == 0;
        sem_wait(&ended);
    }
    for (int i = 0; i < 50; ++i) {
        thrd_t other;
        made += thrd_create(&other, post_c11, &times) == thrd_success;
        sem_wait(&ended);
        made += thrd_join(other, NULL) == thrd_success;
    }
    pthread_attr_destroy(&attributes);
    printf("made %d\n", made);
}

/// Threads that live on other nodes, made in a region.
static void threads_of_all_nodes(void) {
    long sums[64] = {0};
#pragma omp parallel
    {
        const int member = omp_get_thread_num();
        pthread_t thread;
        pthread_create(&thread, NULL, add_sums, &sums[member]);
        pthread_join(thread, NULL);
    }
    int equal = 1;
    for (int i = 1; i < omp_get_max_threads(); ++i) equal &= sums[i] == sums[0];
    printf("on all nodes: %d\n", equal);
}

static void* overflow(void* nothing) {
    volatile int depth = descend(1 << 20);
    return depth ? nothing : NULL;
}

int main(int argc, char** argv) {
    if (argc > 1 && !strcmp(argv[1], "overflow")) {
        pthread_t thread;
        pthread_create(&thread, NULL, overflow, NULL);
        pthread_join(thread, NULL);
        return 1;
    }
    regions_in_a_thread();
    if (argc > 1) return 0;  // no other regions
    regions_at_once();
    write_to_a_stack();
    sizes_and_places();
    come_and_go();
    threads_of_all_nodes();
    return 0;
}
