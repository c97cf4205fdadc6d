// SPDX-License-Identifier: BSD-3-Clause
// Threads of all nodes start children; SIGCHLD of each is told to a handler, between regions and in
// one, to sigsuspend(), sigwaitinfo(), a signalfd, and poll() of it.
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static volatile sig_atomic_t reaped, sum;
static volatile int wrong;

static void reap(void) {
    int status;
    while (waitpid(-1, &status, WNOHANG) > 0) {
        reaped = reaped + 1;
        sum = sum + WEXITSTATUS(status);
    }
}

static void on_child(int number, siginfo_t* info, void* context) {
    (void)context;
    const int errno_before = errno;
    if (number != SIGCHLD || info->si_code != CLD_EXITED || info->si_pid <= 0) wrong = 1;
    reap();
    errno = errno_before;
}

static void start_child(void) {
    char command[64];
    snprintf(command, sizeof command, "sleep 0.02; exit %d", omp_get_thread_num() + 1);
    char* const arguments[] = {"sh", "-c", command, NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0) wrong = 1;
}

static void start_children(void) {
    reaped = sum = 0;
#pragma omp parallel
    start_child();
}

static void tell(const char* way) {
    printf("%s: %d children, %d, %d wrong\n", way, (int)reaped, (int)sum, wrong);
}

int main(void) {
    const int all = omp_get_max_threads();
    sigset_t child, open;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    sigprocmask(SIG_BLOCK, &child, &open);
#pragma omp parallel
    if (omp_get_num_threads() != all)
        wrong = 1;  // threads that have it blocked: main alone runs the handler
    sigprocmask(SIG_SETMASK, &open, NULL);
    start_children();
    while (reaped < all) usleep(1000);
    tell("handler");

    reaped = sum = 0;
#pragma omp parallel
    {
        start_child();
        if (omp_get_thread_num() == 0)
            while (reaped < all) usleep(1000);
    }
    tell("handler in a region");

    sigprocmask(SIG_BLOCK, &child, NULL);
    start_children();
    while (reaped < all) sigsuspend(&open);
    tell("sigsuspend");

    start_children();
    while (reaped < all) {
        siginfo_t info;
        if (sigwaitinfo(&child, &info) != SIGCHLD || info.si_code != CLD_EXITED) wrong = 1;
        reap();
    }
    tell("sigwaitinfo");

    const int fd = signalfd(-1, &child, 0);
    start_children();
    while (reaped < all) {
        struct signalfd_siginfo info;
        if (read(fd, &info, sizeof info) != sizeof info || info.ssi_code != CLD_EXITED) wrong = 1;
        reap();
    }
    tell("signalfd");

    start_children();
    while (reaped < all) {
        struct pollfd one = {fd, POLLIN, 0};
        struct signalfd_siginfo info;
        if (poll(&one, 1, -1) != 1 || read(fd, &info, sizeof info) != sizeof info) wrong = 1;
        reap();
    }
    tell("poll");
    return 0;
}
