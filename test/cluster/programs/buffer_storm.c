// SPDX-License-Identifier: BSD-3-Clause
// A timer's handler writes the very pages that main hands to the kernel and that other threads have
// just written: what resolves a page for a system call must not be interrupted by what needs it.
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { page = 4096, pages = 4, rounds = 1500 };
static char* shared;
static volatile long handled;

static void on_alarm(int number) {
    (void)number;
    handled += 1;
    shared[handled % pages * page + 100] += 1;
}

int main(void) {
    shared = aligned_alloc(page, pages * page);
    memset(shared, 0, pages * page);
    const int zeros = open("/dev/zero", O_RDONLY);
    struct sigaction action = {.sa_handler = on_alarm};
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &every, NULL);
    long wrong = 0;
    for (int round = 0; round < rounds || handled <= 10; ++round) {
#pragma omp parallel
        for (int i = 0; i < pages; ++i) shared[i * page + 200 + omp_get_thread_num()] = (char)round;
        for (int i = 0; i < pages; ++i) wrong += read(zeros, shared + i * page + 1000, 64) != 64;
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    printf("short reads %ld\n", wrong);
    return 0;
}
