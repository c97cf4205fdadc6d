// SPDX-License-Identifier: BSD-3-Clause
// Handlers run in main's thread, may touch shared memory during regions, and the program reads back
// the actions and masks it has set; masks that block every signal do not stop memory from working.
#include <errno.h>
#include <omp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms;
static volatile sig_atomic_t user_signals;
static volatile long* shared;
static sigjmp_buf back;

static void on_alarm(int number) {
    (void)number;
    ++alarms;
    shared[8 * 512] += 1;
}
static void on_user(int number, siginfo_t* info, void* machine) {
    (void)machine;
    user_signals += number == SIGUSR1 && info->si_pid == getpid();
}
static void on_fault(int number) { siglongjmp(back, number); }

static long work(long* values, long count, int rounds) {
    for (int round = 0; round < rounds; ++round) {
#pragma omp parallel for schedule(static, 64)
        for (long i = 0; i < count; ++i) values[i] += i;
    }
    long sum = 0;
    for (long i = 0; i < count; ++i) sum += values[i];
    return sum;
}

int main(void) {
    const long count = 1 << 14;
    long* values = calloc((size_t)count, sizeof *values);
    shared = calloc(9 * 512, sizeof *shared);

    struct sigaction action = {.sa_handler = on_alarm}, old;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGALRM, NULL, &old);
    printf("read back: %d %d\n", old.sa_handler == on_alarm,
           (old.sa_flags & (SA_RESTART | SA_ONSTACK)) == SA_RESTART);
    printf("signal returns default: %d\n", signal(SIGTERM, SIG_IGN) == SIG_DFL);
    printf("and what was set: %d\n", signal(SIGTERM, SIG_DFL) == SIG_IGN);

    struct itimerval every = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &every, NULL);
    while (alarms < 20) work(values, count, 1);
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    printf("alarms counted in shared memory too: %d\n", shared[8 * 512] == alarms);

    action.sa_sigaction = on_user;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 5; ++i) raise(SIGUSR1);
    printf("user signals %d\n", (int)user_signals);

    sigset_t all, mask;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    memset(values, 0, (size_t)count * sizeof *values);
    printf("under a full mask: %ld\n", work(values, count, 20));
    sigprocmask(SIG_SETMASK, NULL, &mask);
    printf("SIGINT blocked: %d\n", sigismember(&mask, SIGINT));
    sigprocmask(SIG_UNBLOCK, &all, NULL);

    volatile long address = 16;
    signal(SIGSEGV, on_fault);
    if (sigsetjmp(back, 1) == 0) *(volatile int*)address = 1;
    printf("own SIGSEGV handler ran; memory still works: %ld\n", work(values, count, 2));
    signal(SIGSEGV, SIG_DFL);

    signal(SIGTERM, SIG_DFL);
    fflush(stdout);
    raise(SIGTERM);
    return 1;
}
