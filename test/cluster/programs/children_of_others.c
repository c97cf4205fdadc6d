// SPDX-License-Identifier: BSD-3-Clause
// Children that a thread of a region has started: others wait for them, one by one or for any, and
// main does.
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4 };

static pid_t start(const char* command) {
    char* const words[] = {"sh", "-c", (char*)command, NULL};
    pid_t child = -1;
    if (posix_spawnp(&child, "sh", NULL, NULL, words, environ) != 0) exit(9);
    return child;
}

/// By each of the calls: the child that has ended, or an error number.
static int wait_any(int how, int options, int* status) {
    struct rusage usage;
    siginfo_t told;
    memset(&told, 0, sizeof told);
    pid_t got = -1;
    switch (how % 6) {
        case 0: got = waitpid(-1, status, options); break;
        case 1: got = wait3(status, options, &usage); break;
        case 2: got = wait4(-1, status, options, NULL); break;
        case 3: got = waitpid(0, status, options); break;
        case 4: got = options == 0 ? wait(status) : waitpid(-getpgrp(), status, options); break;
        default:
            got = waitid(P_ALL, 0, &told, WEXITED | options) == 0 ? told.si_pid : -1;
            *status = told.si_status << 8;
    }
    return got >= 0 ? got : -errno;
}

/// Children of all threads: each thread waits for as many as it has started, whose ever they are.
static void any_of_them(void) {
    enum { rounds = 6 };
    int sum = 0, wrong = 0, none = 0, there = 0, looks = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum, wrong, none, there)
    {
        const int self = omp_get_thread_num();
        pid_t stays = -1;
        for (int i = 0; i < rounds; ++i) {
            char command[40];
            snprintf(command, sizeof command, "sleep .0%d; exit %d", i, 1 + self * rounds + i);
            start(command);
        }
        if (self == threads - 1) stays = start("exec sleep 20");
#pragma omp barrier
        if (self == 0) looks = wait_any(5, WNOHANG | WNOWAIT, &(int){0}) >= 0;
        for (int i = 0; i < rounds; ++i) {
            int how = 0;
            if (wait_any(self + i, 0, &how) <= 0) ++wrong;
            sum += WEXITSTATUS(how);
        }
#pragma omp barrier
        for (int i = 0; i < rounds; ++i) there += wait_any(self + i, WNOHANG, &(int){0}) == 0;
#pragma omp barrier
        if (self == threads - 1) kill(stays, SIGKILL);
        if (self == 0) wrong += wait_any(0, 0, &(int){0}) <= 0;
#pragma omp barrier
        for (int i = 0; i < rounds; ++i) none += wait_any(self + i, 0, &(int){0}) == -ECHILD;
#pragma omp barrier
        if (self == threads - 1) start("exit 1"), start("exit 2");
    }
    int how[2] = {0, 0};
    const int both = wait(&how[0]) > 0 && wait_any(5, 0, &how[1]) > 0 && wait(NULL) == -1;
    printf("any: %d %d %d %d %d; main: %d %d\n", sum, wrong, looks, there, none, both,
           WEXITSTATUS(how[0]) + WEXITSTATUS(how[1]));
}

int main(void) {
    static pid_t child[threads], slow[threads], later;
    static int status[threads], twice[threads], waited[threads], used[threads];
#pragma omp parallel num_threads(threads)
    {
        const int self = omp_get_thread_num(), next = (self + 1) % threads;
        char command[40];
        snprintf(command, sizeof command, "exit %d", 3 + self);
        child[self] = start(command);
        slow[self] = start("sleep .1; kill -TERM $$");
        if (self == threads - 1) later = start("exit 11");
#pragma omp barrier
        int how = 0;
        struct rusage usage;
        memset(&usage, 0, sizeof usage);
        status[self] = wait4(child[next], &how, 0, &usage) == child[next] ? WEXITSTATUS(how) : -1;
        used[self] = usage.ru_maxrss > 0;
        twice[self] = waitpid(child[next], &how, 0) == -1 && errno == ECHILD;
        pid_t got;
        while ((got = waitpid(slow[next], &how, WNOHANG)) == 0) usleep(1000);
        waited[self] = got == slow[next] && WIFSIGNALED(how) ? WTERMSIG(how) : -1;
    }
    for (int i = 0; i < threads; ++i)
        printf("thread %d: %d %d %d %d\n", i, status[i], used[i], twice[i], waited[i]);
    int how = 0;
    const pid_t got = waitpid(later, &how, 0);
    printf("main: %d %d\n", got == later, WEXITSTATUS(how));
    any_of_them();
    return 0;
}
