// SPDX-License-Identifier: BSD-3-Clause
// The program is one process to all its threads: one number, which calls that name a process take,
// and which tells nobody that he was forked.
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4, numbers = 400 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;
static int set_up;
static long counter;
static _Thread_local volatile pid_t sender;

// As libraries find out that they run in a forked child, and begin anew.
static long next_number(void) {
    pthread_mutex_lock(&gate);
    if (owner != getpid()) {
        owner = getpid();
        ++set_up;
        counter = 0;
    }
    const long number = ++counter;
    pthread_mutex_unlock(&gate);
    return number;
}

static void note_sender(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)context;
    sender = info->si_pid;
}

static int names_this_process(pid_t process) {
    char here = 'h', copy = 0;
    struct iovec to = {&copy, 1}, from = {&here, 1};
    struct rlimit limit;
    cpu_set_t processors;
    const int descriptor = (int)syscall(SYS_pidfd_open, process, 0);
    const int opened = descriptor >= 0 && close(descriptor) == 0;
    return opened + (kill(process, 0) == 0) + (getpgid(process) == getpgrp()) +
           (getsid(process) == getsid(0)) + (prlimit(process, RLIMIT_NOFILE, NULL, &limit) == 0) +
           (getpriority(PRIO_PROCESS, (id_t)process) != -1) +
           (sched_getaffinity(process, sizeof processors, &processors) == 0) +
           (process_vm_readv(process, &to, 1, &from, 1, 0) == 1 && copy == 'h');
}

int main(void) {
    struct sigaction action = {.sa_sigaction = note_sender, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    const pid_t process = getpid();
    int same = 0, bare = 0, named = 0, sent = 0, twice = 0;
    char seen[numbers + 1] = {0};
#pragma omp parallel num_threads(threads) reduction(+ : same, bare, named, sent)
    {
        same += getpid() == process;
        bare += syscall(SYS_getpid) == process;
        named += names_this_process(getpid());
        syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
        sent += sender == process;
    }
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(+ : twice)
    for (int i = 0; i < numbers; ++i)
        twice += __atomic_exchange_n(&seen[next_number()], 1, __ATOMIC_ACQ_REL);
    printf("same %d, bare %d, named %d, sent %d\n", same, bare, named, sent);
    printf("set up %d time, %d numbers given twice\n", set_up, twice);
    return 0;
}
