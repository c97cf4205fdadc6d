// SPDX-License-Identifier: BSD-3-Clause
// Whatever a timer has sent is handled before the call that stops it returns, wherever its thread
// was: so what the handler counts is read behind that call.
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { rounds = 200, page = 512 };
static volatile long handled;
static volatile double shared[64 * page];

static void on_alarm(int number) {
    (void)number;
    handled += 1;
}

static void compute(void) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 3000000);
}

static void start(timer_t timer, int by_timer, long microseconds) {
    if (by_timer) {
        struct itimerspec every = {{0, microseconds * 1000}, {0, microseconds * 1000}};
        timer_settime(timer, 0, &every, NULL);
    } else {
        struct itimerval every = {{0, microseconds}, {0, microseconds}};
        setitimer(ITIMER_REAL, &every, NULL);
    }
}

int main(void) {
    // The threads of the team inherit that: the signal is for main alone.
    sigset_t alarms, before_team;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, &before_team);
    int sum = 0;
#pragma omp parallel reduction(+ : sum)
    sum += 1;
    pthread_sigmask(SIG_SETMASK, &before_team, NULL);

    struct sigaction action = {.sa_handler = on_alarm};
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);

    int late = 0;
    for (int round = 0; round < rounds; ++round) {
        start(timer, round % 2, 300);
#pragma omp parallel for schedule(static, 1) reduction(+ : sum)
        for (int i = 0; i < 64; ++i) {
            shared[i * page] += 1;
#pragma omp critical
            sum += 1;
        }
        // A fast machine is through with each region before the first signal.
        if (round < 2) compute();
        start(timer, round % 2, 0);
        const long before = handled;
        compute();
        late += handled != before;
    }
    printf("late %d, sum %d, %s\n", late, sum, handled > 0 ? "handled" : "none");
    return 0;
}
