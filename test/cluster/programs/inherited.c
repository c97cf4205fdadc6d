// SPDX-License-Identifier: BSD-3-Clause
// What a new thread has from the thread that makes it (signal mask, processors, scheduling, name
// and the like): before the first region, when teams grow and shrink, in teams inside of teams, in
// threads of the program's own and in children.
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads_max = 64 };
struct Attributes {
    unsigned long mask;
    int processors, first, nice, policy, slack, io, privileges, broken;
    char name[16];
};
static struct Attributes found[threads_max];

static void look(struct Attributes* is) {
    sigset_t mask;
    cpu_set_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    memcpy(&is->mask, &mask, sizeof is->mask);
    sched_getaffinity(0, sizeof set, &set);
    is->processors = CPU_COUNT(&set);
    for (is->first = 0; !CPU_ISSET((unsigned)is->first, &set);) ++is->first;
    is->nice = getpriority(PRIO_PROCESS, 0);
    is->policy = sched_getscheduler(0);
    is->slack = prctl(PR_GET_TIMERSLACK);
    is->io = (int)syscall(SYS_ioprio_get, 1, 0);
    is->privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    is->broken = prctl(PR_MCE_KILL_GET, 0, 0, 0, 0);
    memset(is->name, 0, sizeof is->name);
    prctl(PR_GET_NAME, is->name);
}

static void show(const char* title, int threads) {
    printf("%s:\n", title);
    for (int i = 0; i < threads; ++i) {
        const struct Attributes* is = &found[i];
        printf("  %d: %lx %d from %d, nice %d, %d, %d, %x, %d, %d, %s\n", i, is->mask,
               is->processors, is->first, is->nice, is->policy, is->slack, (unsigned)is->io,
               is->privileges, is->broken, is->name);
    }
}

static void region(const char* title, int threads) {
    memset(found, 0, sizeof found);
#pragma omp parallel num_threads(threads)
    look(&found[omp_get_thread_num()]);
    show(title, threads);
}

static void block(int how, int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    if (how == SIG_SETMASK)
        sigprocmask(how, &set, NULL);
    else
        pthread_sigmask(how, &set, NULL);
}

static void bind_to(unsigned processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void* look_in_thread(void* at) {
    look(at);
    return NULL;
}

// Masks that a thread of a region changes are its own, until it stands for another.
static void changes_in_region(void) {
#pragma omp parallel num_threads(4)
    {
        const int me = omp_get_thread_num();
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        look(&found[me]);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (me % 2 == 1) block(SIG_BLOCK, SIGURG);
    }
    show("all blocked", 4);
    region("every second one", 4);
#pragma omp parallel num_threads(4)
    block(SIG_UNBLOCK, SIGURG);
    region("none again", 4);
}

static void threads_of_threads(void) {
#pragma omp parallel num_threads(4)
    {
        pthread_t thread;
        pthread_create(&thread, NULL, look_in_thread, &found[omp_get_thread_num()]);
        pthread_join(thread, NULL);
    }
    show("threads of threads", 4);
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        const int outer = omp_get_thread_num();
        block(SIG_BLOCK, outer == 0 ? SIGWINCH : SIGCHLD);
        if (outer == 1) prctl(PR_SET_NAME, "second");
#pragma omp parallel num_threads(2)
        look(&found[2 * outer + omp_get_thread_num()]);
        block(SIG_UNBLOCK, outer == 0 ? SIGWINCH : SIGCHLD);
    }
    show("inside", 4);
}

// The kernel's word for what a process begins with.
static void child(int number) {
    char word[] = "grep", pattern[] = "SigBlk", file[] = "/proc/self/status", line[64] = "";
    char* const arguments[] = {word, pattern, file, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t process;
    if (pipe(ends) != 0) return;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (posix_spawnp(&process, word, &actions, NULL, arguments, environ) == 0) {
        waitpid(process, NULL, 0);
        if (read(ends[0], line, sizeof line - 1) < 1) line[0] = '?';
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    close(ends[1]);
    printf("child %d: %s", number, line);
}

static void children(void) {
#pragma omp parallel for ordered schedule(static, 1) num_threads(4)
    for (int i = 0; i < 4; ++i) {
#pragma omp ordered
        child(i);
    }
}

int main(void) {
    block(SIG_BLOCK, SIGUSR2);
    bind_to(1);
    setpriority(PRIO_PROCESS, 0, 3);
    prctl(PR_SET_TIMERSLACK, 123456);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    region("first", 2);
    block(SIG_BLOCK, SIGALRM);
    bind_to(0);
    prctl(PR_SET_NAME, "renamed");
    prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0);
    syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 5);
    region("grown", 4);
    block(SIG_SETMASK, SIGUSR1);
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_BATCH, &none);
    if (nice(2) == -1) return 9;
    region("changed", 4);
    region("shrunk", 2);
    region("grown again", 4);
    changes_in_region();
    threads_of_threads();
    children();
    return 0;
}
