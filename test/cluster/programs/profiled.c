// SPDX-License-Identifier: BSD-3-Clause
// Actions of signals that libc sets inside itself: for profil(), which gcc -pg uses, with a mask of
// all signals, and for sigset() and siginterrupt(). Their handlers may touch shared memory, too.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

int profil(unsigned short* counts, size_t bytes, size_t offset, unsigned scale);

enum { stride = 512, length = 64 * stride };
static volatile long* shared;
static long* values;

static void on_alarm(int number) {
    (void)number;
    ++shared[0];
}
static void on_user(int number, siginfo_t* info, void* machine) {
    (void)info, (void)machine;
    shared[stride] += number == SIGUSR2;
}

static void work(void) {
#pragma omp parallel for schedule(static, stride)
    for (long i = 0; i < length; ++i) ++values[i];
}

static long long sum(const unsigned short* counts, size_t length_of_counts) {
    long long all = 0;
    for (size_t i = 0; i < length_of_counts; ++i) all += counts[i];
    return all;
}

int main(void) {
    shared = calloc(2 * stride, sizeof *shared);
    values = calloc(length, sizeof *values);

    // Whatever is executed falls into one of these: text of the program or not.
    const size_t count = 1 << 16;
    unsigned short* counts = calloc(count, sizeof *counts);
    extern char __executable_start;
    profil(counts, count * sizeof *counts, (size_t)&__executable_start, 0x10000);
    struct sigaction read_back;
    sigaction(SIGPROF, NULL, &read_back);
    int ticks = 0;
    while (ticks < 20) {
        for (int i = 0; i < 50; ++i) work();
        // A tick outside of the program's text is counted nowhere.
        for (volatile long i = 0; i < 20000000; ++i) {
        }
        ticks = (int)sum(counts, count);
    }
    profil(NULL, 0, 0, 0);
    printf("profiled, all signals in the mask: %d\n", sigismember(&read_back.sa_mask, SIGSYS));

    printf("sigset returns the default: %d\n", sigset(SIGALRM, on_alarm) == SIG_DFL);
    siginterrupt(SIGALRM, 0);
    const struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    while (shared[0] < 20) work();
    setitimer(ITIMER_REAL, &never, NULL);
    printf("and what was set: %d\n", sigset(SIGALRM, SIG_IGN) == on_alarm);

    // As a language's own runtime does.
    struct {
        void (*handler)(int, siginfo_t*, void*);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } wanted = {on_user, SA_SIGINFO | 0x04000000, NULL, ~0UL}, before = {0};
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    syscall(SYS_rt_sigaction, SIGUSR1, NULL, &before, sizeof before.mask);
    wanted.restorer = before.restorer;
    printf("raw: read %d", (void*)before.handler == (void*)on_alarm);
    printf(", set %ld", syscall(SYS_rt_sigaction, SIGUSR2, &wanted, NULL, sizeof wanted.mask));
    printf(", refused %ld\n",
           syscall(SYS_rt_sigaction, SIGKILL, &wanted, NULL, sizeof wanted.mask));
    for (int i = 0; i < 5; ++i) raise(SIGUSR2);
    printf("delivered %ld\n", shared[stride]);
    const long first = values[0];
    int equal = 0;
    for (long i = 0; i < length; ++i) equal += values[i] == first;
    printf("memory works: %d\n", equal == length);
    return 0;
}
