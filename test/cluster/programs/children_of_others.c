// SPDX-License-Identifier: BSD-3-Clause
// Children that a thread of a region has started: another waits for them, and main.
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
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
    return 0;
}
