// SPDX-License-Identifier: BSD-3-Clause
// Thread-specific keys: made by any thread and used by all, by libraries before main, deleted and
// made again; destructors at the end of threads of every node; those of C11.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "verdict.h"

enum { threads_max = 64, made_each = 3 };

extern pthread_key_t key_of_library(void);
extern const char* value_of_library(void);

static pthread_key_t keys[threads_max][made_each];

static void made_by_each_thread(void) {
    long failures = 0, right = 0, same = 0;
    const int team = team_size();
#pragma omp parallel reduction(+ : failures, right)
    {
        const int me = omp_get_thread_num();
        for (int k = 0; k < made_each; ++k) failures += pthread_key_create(&keys[me][k], NULL) != 0;
#pragma omp barrier
        for (int t = 0; t < team; ++t) {
            for (int k = 0; k < made_each; ++k) {
                failures += pthread_getspecific(keys[t][k]) != NULL;
                failures += pthread_setspecific(keys[t][k], &keys[t][k] + me) != 0;
            }
        }
#pragma omp barrier
        for (int t = 0; t < team; ++t)
            for (int k = 0; k < made_each; ++k)
                right += pthread_getspecific(keys[t][k]) == &keys[t][k] + me;
    }
    for (int a = 0; a < team * made_each; ++a)
        for (int b = 0; b < a; ++b) same += keys[0][a] == keys[0][b];
    check_equal("keys could be made and used by all", failures, 0);
    check_equal("each thread found its values", right, (long)made_each * team * team);
    check_equal("no two keys are one", same, 0);
}

/// What other threads have set is none of a key that is made anew, often enough for each number.
static void made_again(void) {
    const int team = team_size();
    long failures = 0, left = 0;
    static pthread_key_t shared;
    for (int turn = 0; turn < 20; ++turn) {
#pragma omp parallel reduction(+ : failures, left)
        {
            const int me = omp_get_thread_num();
            if (me == turn % team) failures += pthread_key_create(&shared, NULL) != 0;
#pragma omp barrier
            left += pthread_getspecific(shared) != NULL;
            failures += pthread_setspecific(shared, &shared) != 0;
            left += pthread_getspecific(shared) != &shared;
#pragma omp barrier
            if (me == (turn + 1) % team) failures += pthread_key_delete(shared) != 0;
        }
    }
    check_equal("keys came and went", failures, 0);
    check_equal("none had values of a former one", left, 0);
    check("a deleted key is none", pthread_setspecific(shared, &shared) == EINVAL);
    check("it is deleted once", pthread_key_delete(shared) == EINVAL);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t counted, again;
static tss_t of_c11;
static long destroyed, rounds, of_c11_destroyed, null_destroyed;

static void count(void* value) {
    pthread_mutex_lock(&gate);
    destroyed += *(long*)value;
    null_destroyed += pthread_getspecific(counted) == NULL;
    pthread_mutex_unlock(&gate);
    free(value);
}
static void set_again(void* value) {
    pthread_mutex_lock(&gate);
    ++rounds;
    pthread_mutex_unlock(&gate);
    pthread_setspecific(again, value);
}
static void count_c11(void* value) {
    pthread_mutex_lock(&gate);
    of_c11_destroyed += *(long*)value;
    pthread_mutex_unlock(&gate);
}

static void* use(void* number) {
    long* const mine = malloc(sizeof *mine);
    *mine = (long)number;
    pthread_setspecific(counted, mine);
    pthread_setspecific(again, mine);
    tss_set(of_c11, number == NULL ? NULL : &of_c11_destroyed);
    static long one = 1;
    if (number != NULL) tss_set(of_c11, &one);
    if ((long)number % 2) pthread_exit(NULL);
    return NULL;
}

/// Threads that end on every node, after the keys were made on one of them.
static void destroyed_at_end(void) {
    const int team = team_size();
    long failures = 0;
#pragma omp parallel
    if (omp_get_thread_num() == team - 1) {
        pthread_key_create(&counted, count);
        pthread_key_create(&again, set_again);
        tss_create(&of_c11, count_c11);
    }
#pragma omp parallel reduction(+ : failures)
    for (long number = 0; number < 4; ++number) {
        pthread_t thread;
        failures += pthread_create(&thread, NULL, use, (void*)number) != 0;
        failures += pthread_join(thread, NULL) != 0;
    }
    check_equal("threads ran", failures, 0);
    check_equal("their values were destroyed", destroyed, 6L * team);
    check_equal("after they were taken away", null_destroyed, 4L * team);
    check_equal("as often as it takes", rounds, 4L * team * PTHREAD_DESTRUCTOR_ITERATIONS);
    check_equal("those of C11, too", of_c11_destroyed, 3L * team);
}

static pthread_key_t by_once;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void make_by_once(void) { pthread_key_create(&by_once, free); }

/// A function that ends in the call is called by no code of the program.
static void made_by_once(void) {
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        pthread_once(&once, make_by_once);
        long* const mine = calloc(1, sizeof *mine);
        if (pthread_setspecific(by_once, mine) == 0) sum += pthread_getspecific(by_once) == mine;
    }
    check_equal("a key made once is everyone's", sum, team_size());
}

static void all_there_are(void) {
    static pthread_key_t many[PTHREAD_KEYS_MAX];
    int count = 0, failure = 0, deleted = 0;
    while (count < PTHREAD_KEYS_MAX && (failure = pthread_key_create(&many[count], NULL)) == 0)
        ++count;
    check("there are many", count >= 700);
    check("but not any number", failure == EAGAIN);
#pragma omp parallel for reduction(+ : deleted) schedule(static, 1)
    for (int k = 0; k < count; ++k) deleted += pthread_key_delete(many[k]) == 0;
    check_equal("all go", deleted, count);
    check("and come again", pthread_key_create(&many[0], NULL) == 0);
}

static void say_goodbye(void* text) { printf("main's value is destroyed: %s\n", (char*)text); }

/// Without a region before: gcc's runtime may then wait for threads that are gone.
static void leave(void* value) {
    pthread_key_t last;
    pthread_key_create(&last, say_goodbye);
    pthread_setspecific(last, value);
    pthread_exit(NULL);
}

int main(int argc, char** argv) {
    check("a library's constructor has set a value", strcmp(value_of_library(), "early") == 0);
    if (argc > 1) leave(argv[1]);
    long known = 0;
#pragma omp parallel reduction(+ : known)
    known += pthread_setspecific(key_of_library(), &known) == 0 &&
             pthread_getspecific(key_of_library()) == &known;
    check_equal("its key is everyone's", known, team_size());
    made_by_each_thread();
    made_again();
    destroyed_at_end();
    made_by_once();
    all_there_are();
    return wrong;
}
