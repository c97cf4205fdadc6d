// SPDX-License-Identifier: BSD-3-Clause
// Signals for the process, asked for by the team's last thread, which is on the last node: handlers
// run, and the default action ends the job with its status. The word says which.
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t rung;
static volatile long trail[4096];

static void on_signal(int number) {
    for (int i = 0; i < 4096; ++i) trail[i] = number;
    rung = number;
}

static void start_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    timer_t timer;
    const struct itimerspec soon = {{0, 0}, {0, 30000000}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &soon, NULL) != 0)
        exit(3);
}

static void ask(const char* word) {
    const struct itimerval soon = {{0, 0}, {0, 30000}}, often = {{0, 5000}, {0, 5000}};
    if (strcmp(word, "kill") == 0) kill(getpid(), SIGUSR1);
    if (strcmp(word, "terminate") == 0) kill(getpid(), SIGTERM);
    if (strcmp(word, "alarm") == 0) alarm(1);
    if (strcmp(word, "interval") == 0) setitimer(ITIMER_REAL, &soon, NULL);
    if (strcmp(word, "profile") == 0) setitimer(ITIMER_PROF, &often, NULL);
    if (strcmp(word, "timer") == 0) start_timer();
    if (strcmp(word, "queue") == 0) sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 1});
    if (strcmp(word, "thread") == 0) pthread_kill(pthread_self(), SIGUSR1);
    if (strcmp(word, "raise") == 0) raise(SIGUSR1);
    if (strcmp(word, "processor") == 0) {
        struct rlimit limit;
        getrlimit(RLIMIT_CPU, &limit);
        limit.rlim_cur = 1;
        setrlimit(RLIMIT_CPU, &limit);
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
    const char* const word = argc > 1 ? argv[1] : "";
    const int handled = argc > 2;
    for (int number = SIGHUP; number < SIGRTMIN && handled; ++number)
        if (strchr("\1\2\12\14\16\17\30\33", number) != NULL) signal(number, on_signal);
    int rang = 0;
    long marks = 0;
#pragma omp parallel reduction(+ : rang, marks)
    {
        if (omp_get_thread_num() == omp_get_num_threads() - 1) {
            // Beside other work a second of the processor takes many.
            const double end = seconds() + 200;
            ask(word);
            while (!rung && seconds() < end) {
                if (strcmp(word, "processor") != 0 && strcmp(word, "profile") != 0) usleep(300);
            }
            rang = rung;
            for (int i = 0; i < 4096; ++i) marks += trail[i] == rang;
        }
    }
    printf("%s: signal %d, %ld marks\n", word, rang, marks);
    return 0;
}
