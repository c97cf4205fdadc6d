// SPDX-License-Identifier: BSD-3-Clause
// A thread of any node waits for signals that the process gets, and sees what was written before it
// was sent.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "verdict.h"

static long note;

/// @param waits, sends  threads
static void wake(const char* what, const sigset_t* set, int waits, int sends, int number) {
    long got = 0, seen = 0;
    note = 0;
#pragma omp parallel reduction(+ : got, seen)
    {
        const int me = omp_get_thread_num();
        if (me == waits && waits != sends) {
            int which = 0;
            sigwait(set, &which);
            got += which == number;
            seen += note == number;
        } else if (me == sends) {
            usleep(5000);
            note = number;
            kill(getpid(), number);
            siginfo_t info;
            if (waits == sends) got += sigwaitinfo(set, &info) == number && info.si_signo == number;
            if (waits == sends) seen = 1;
        }
    }
    check_equal(what, got, 1);
    check_equal("and sees what was written", seen, 1);
}

/// A thread of no maker's mask blocks a signal of its own, and takes what it has sent itself.
static long sent_to_itself(int thread) {
    long got = 0;
#pragma omp parallel reduction(+ : got)
    if (omp_get_thread_num() == thread) {
        sigset_t own, former;
        int which = 0;
        sigemptyset(&own);
        sigaddset(&own, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &own, &former);
        raise(SIGUSR1);
        sigwait(&own, &which);
        got += which == SIGUSR1;
        pthread_kill(pthread_self(), SIGUSR1);
        which = 0;
        sigwait(&own, &which);
        got += which == SIGUSR1;
        pthread_sigmask(SIG_SETMASK, &former, NULL);
    }
    return got;
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    const int last = team_size() - 1;
    wake("the last thread is woken", &set, last, 0, SIGUSR2);
    wake("the first thread is woken", &set, 0, last, SIGUSR2);
    wake("another node's own reaches it", &set, last, last, SIGUSR2);

    long elapsed = 0, rung = 1;
#pragma omp parallel reduction(+ : elapsed)
    if (omp_get_thread_num() == last) {
        const struct timespec at_once = {0, 0}, soon = {0, 30000000};
        elapsed += sigtimedwait(&set, NULL, &at_once) == -1 && errno == EAGAIN;
        elapsed += sigtimedwait(&set, NULL, &soon) == -1 && errno == EAGAIN;
    }
    check_equal("a wait has a limit", elapsed, 2);
    check_equal("what a thread blocks and sends itself waits for it", sent_to_itself(last), 2);
    const struct itimerval once = {{0, 0}, {0, 50000}};
    setitimer(ITIMER_REAL, &once, NULL);
#pragma omp parallel reduction(+ : rung)
    if (omp_get_thread_num() == last) {
        int which = 0;
        sigwait(&set, &which);
        rung += which == SIGALRM;
    }
    check_equal("main's alarm is heard", rung, 2);
    return wrong;
}
