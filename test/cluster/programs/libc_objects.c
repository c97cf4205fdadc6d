// SPDX-License-Identifier: BSD-3-Clause
// Objects that libc makes for the program, made by one thread and used by all, in turn: compiled
// regular expressions, lists of addresses, semaphores with names.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <omp.h>
#include <regex.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static regex_t expression;

static long count_hits(const char* format) {
    long hits = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : hits)
    for (int i = 0; i < 200; ++i) {
        char line[64];
        regmatch_t match[3];
        snprintf(line, sizeof line, format, i, i % 2 ? "odd" : "even");
        if (regexec(&expression, line, 3, match, 0) == 0) hits += match[1].rm_eo - match[1].rm_so;
    }
    return hits;
}

/// Compiled by thread `maker`, over and over, so that one lies where another was.
static void expressions(int maker) {
    for (int turn = 0; turn < 6; ++turn) {
        int failure = -1;
#pragma omp parallel
        if (omp_get_thread_num() == (maker < 0 ? omp_get_num_threads() - 1 : maker)) {
            const char* const pattern = turn % 2 ? "^ITEM-([0-9]+)-(odd|even)$" : "-([0-9]+)-even";
            failure =
                regcomp(&expression, pattern, turn % 2 ? REG_EXTENDED | REG_ICASE : REG_EXTENDED);
        }
        printf("compiled %d, %zu groups, %ld and %ld\n", failure, expression.re_nsub,
               count_hits("item-%d-%s"), count_hits("thing-%d-%s"));
        regfree(&expression);
    }
    char text[100];
    const int failure = regcomp(&expression, "(", REG_EXTENDED);
    regerror(failure, &expression, text, sizeof text);
    printf("%s\n", text);
}

static void addresses(void) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_flags = AI_NUMERICHOST | AI_CANONNAME};
    struct addrinfo* list = NULL;
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1 &&
        getaddrinfo("127.0.0.1", "4711", &hints, &list) != 0)
        abort();
    long entries = 0, good = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : entries, good)
    for (int i = 0; i < 20; ++i) {
        for (const struct addrinfo* each = list; each != NULL; each = each->ai_next) {
            const struct sockaddr_in* const to = (const struct sockaddr_in*)each->ai_addr;
            good += ntohs(to->sin_port) == 4711 && ntohl(to->sin_addr.s_addr) == 0x7f000001;
            good += each == list && strcmp(each->ai_canonname, "127.0.0.1") == 0;
            entries++;
        }
    }
    printf("%ld entries, %ld good, %d\n", entries, good,
           getaddrinfo("127.0.0.x", NULL, &hints, &list) == EAI_NONAME);
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) freeaddrinfo(list);
}

/// Made by main, opened by each thread once more; its name is free again when it is unlinked.
static void semaphores(void) {
    char name[40];
    snprintf(name, sizeof name, "/hiroba-objects-%d", (int)getpid());
    for (int turn = 0; turn < 2; ++turn) {
        sem_t* const made = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
        if (made == SEM_FAILED) abort();
        const int again =
            sem_open(name, O_CREAT | O_EXCL, 0600, 1) == SEM_FAILED && errno == EEXIST;
        long total = 0, opened = 0;
#pragma omp parallel reduction(+ : opened)
        {
            sem_t* const one = sem_open(name, O_CREAT, 0600, 7);
            opened += one == made;
            for (int i = 0; i < 50; ++i) {
                sem_wait(one);
                total++;
                sem_post(one);
            }
            opened += sem_close(one) == 0;
        }
        int value = -1;
        sem_getvalue(made, &value);
        printf("%d: %d, %ld of %d, value %d\n", again, total == 50L * omp_get_max_threads(), opened,
               2 * omp_get_max_threads(), value);
        printf("unlinked %d\n", sem_unlink(name));
        printf("%d\n", sem_open(name, 0) == SEM_FAILED && errno == ENOENT);
        if (sem_wait(made) != 0) abort();
        const int taken = sem_trywait(made);
        printf("%d, taken: %d\n", taken, errno == EAGAIN);
        printf("closed %d\n", sem_close(made));
        if (turn == 0) printf("%d\n", sem_unlink(name) == -1 && errno == ENOENT);
    }
}

int main(void) {
    expressions(0);
    expressions(-1);
    addresses();
    semaphores();
    return 0;
}
