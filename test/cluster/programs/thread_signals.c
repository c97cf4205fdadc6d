// SPDX-License-Identifier: BSD-3-Clause
// Signals for one thread of the team, sent by another: each call that sends one, to each thread
// from its neighbour; and each way in which the thread may be waiting for it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { threads = 4 };
static pthread_t name[threads];
static pid_t id[threads];
static volatile int value_of[threads], count_of[threads], wrong_thread[threads];
static volatile int has_come[threads];
static struct timespec start;
static _Thread_local int self;

static void on_signal(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    if (!pthread_equal(pthread_self(), name[self])) ++wrong_thread[self];
    value_of[self] = info->si_code == SI_QUEUE ? info->si_value.sival_int : -1;
    ++count_of[self];
    __atomic_store_n(&has_come[self], 1, __ATOMIC_RELEASE);
}

// Calls that send.
static int by_kill(int to) { return pthread_kill(name[to], SIGUSR1); }
static int by_queue(int to) {
    return pthread_sigqueue(name[to], SIGUSR1, (union sigval){.sival_int = 40 + to});
}
static int by_real_time(int to) {
    return pthread_sigqueue(name[to], SIGRTMIN + 3, (union sigval){.sival_int = 50 + to});
}
static int by_tgkill(int to) { return (int)syscall(SYS_tgkill, getpid(), id[to], SIGUSR1); }
static int by_tkill(int to) { return (int)syscall(SYS_tkill, id[to], SIGUSR1); }
static int by_info(int to) {
    siginfo_t info = {.si_code = SI_QUEUE};
    info.si_value.sival_int = 60 + to;
    return (int)syscall(SYS_rt_tgsigqueueinfo, getpid(), id[to], SIGUSR1, &info);
}
typedef int Send(int to);
static const struct {
    const char* name;
    Send* send;
    int value;  // and the thread's number
} calls[] = {{"pthread_kill", by_kill, -1},
             {"pthread_sigqueue", by_queue, 40},
             {"a real-time signal", by_real_time, 50},
             {"tgkill", by_tgkill, -1},
             {"tkill", by_tkill, -1},
             {"rt_tgsigqueueinfo", by_info, 60}};

// A signal that is lost ends the program.
static void go_on_waiting(void) {
    enum { limit_s = 30 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - start.tv_sec > limit_s) {
        fputs("a signal has not come\n", stderr);
        _exit(3);
    }
    sched_yield();
}

static void await(int thread) {
    while (!__atomic_load_n(&has_come[thread], __ATOMIC_ACQUIRE)) go_on_waiting();
}

static void try_call(unsigned call) {
    static int sent[threads];
    value_of[self] = count_of[self] = has_come[self] = 0;
#pragma omp barrier
    const int to = (self + 1) % threads;
    sent[self] = calls[call].send(to);
    await(self);
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < threads; ++i) {
        const int wanted = calls[call].value < 0 ? -1 : calls[call].value + i;
        printf("%s to thread %d: %d, %s, %d times, %d in another\n", calls[call].name, i,
               sent[(i + threads - 1) % threads], value_of[i] == wanted ? "its value" : "?",
               count_of[i], wrong_thread[i]);
    }
}

// Ways to wait, with the signal blocked or open.
static sigset_t one(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return set;
}
static int ends[threads][2];

static int in_barrier(void) { return 0; }
static int in_suspend(void) {
    sigset_t none;
    sigemptyset(&none);
    sigsuspend(&none);
    return errno == EINTR && count_of[self] == 1;
}
static int in_wait(void) {
    const sigset_t set = one();
    int number = 0;
    sigwait(&set, &number);
    return number == SIGUSR1 && count_of[self] == 0;
}
static int in_timed_wait(void) {
    const sigset_t set = one();
    siginfo_t info;
    const struct timespec limit = {20, 0};
    return sigtimedwait(&set, &info, &limit) == SIGUSR1 && count_of[self] == 0;
}
static int in_poll(void) {
    sigset_t none;
    sigemptyset(&none);
    return ppoll(NULL, 0, NULL, &none) == -1 && errno == EINTR && count_of[self] == 1;
}
static int in_signalfd(void) {
    const sigset_t set = one();
    const int fd = signalfd(-1, &set, 0);
    struct signalfd_siginfo info;
    const int good = read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1;
    close(fd);
    return good && count_of[self] == 0;
}
static int unblocked(void) {
    const sigset_t set = one();
    sigset_t pending;
    do {
        sigpending(&pending);
        go_on_waiting();
    } while (!sigismember(&pending, SIGUSR1));
    const int before = count_of[self];
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return before == 0 && count_of[self] == 1;
}
static int in_computing(void) {
    volatile double sum = 0;
    while (!has_come[self]) sum += 1;
    return count_of[self] == 1;
}
static int in_mutex(void) {
    static pthread_mutex_t mutex[threads];
    pthread_mutex_t* const own = &mutex[self];
    *own = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(own);
    while (!has_come[self] && pthread_cond_timedwait(&never, own, &until) == 0) {
    }
    pthread_mutex_unlock(own);
    await(self);
    return count_of[self] == 1;
}
// The neighbour sends until the call has ended: it may not have begun.
static volatile int has_ended[threads];
static int in_read(void) {
    char byte;
    errno = 0;
    const int good = read(ends[self][0], &byte, 1) == -1 && errno == EINTR && count_of[self] > 0;
    has_ended[self] = 1;
    return good;
}
static int in_sleep(void) {
    const struct timespec limit = {20, 0};
    const int good = nanosleep(&limit, NULL) == -1 && errno == EINTR && count_of[self] > 0;
    has_ended[self] = 1;
    return good;
}
typedef int Wait(void);
static const struct {
    const char* name;
    Wait* wait;
    int blocked, repeated;
} waits[] = {{"barrier", in_barrier, 0, 0},
             {"sigsuspend", in_suspend, 1, 0},
             {"sigwait", in_wait, 1, 0},
             {"sigtimedwait", in_timed_wait, 1, 0},
             {"ppoll", in_poll, 1, 0},
             {"signalfd", in_signalfd, 1, 0},
             {"until unblocked", unblocked, 1, 0},
             {"computing", in_computing, 0, 0},
             {"condition variable", in_mutex, 0, 0},
             {"read", in_read, 0, 1},
             {"nanosleep", in_sleep, 0, 1}};

static void try_wait(unsigned way) {
    static int good[threads];
    const sigset_t set = one();
    value_of[self] = count_of[self] = has_come[self] = has_ended[self] = 0;
    pthread_sigmask(waits[way].blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
    // By twos: one sends, one waits.
    for (int turn = 0; turn < 2; ++turn) {
#pragma omp barrier
        if (self % 2 == turn) {
            const int to = (self + 1) % threads;
            do {
                pthread_kill(name[to], SIGUSR1);
                if (waits[way].repeated) usleep(2000);
                go_on_waiting();
            } while (waits[way].repeated && !__atomic_load_n(&has_ended[to], __ATOMIC_ACQUIRE));
        } else {
            good[self] = waits[way].wait();
        }
    }
#pragma omp barrier
    if (waits[way].wait == in_barrier) {
        await(self);
        good[self] = count_of[self] == 1;
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
#pragma omp barrier
#pragma omp single
    printf("waiting in %s: %d %d %d %d\n", waits[way].name, good[0], good[1], good[2], good[3]);
}

// A timer sends the thread itself a signal, whatever the runtime keeps closed there.
static void try_timers(void) {
    static int good[threads];
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = id[self];
    event.sigev_value.sival_int = 7;
    const struct itimerspec soon = {{0, 0}, {0, 3000000}};
    timer_t timer;
    count_of[self] = has_come[self] = 0;
    good[self] = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
                 timer_settime(timer, 0, &soon, NULL) == 0;
    if (good[self]) await(self);
    timer_delete(timer);
#pragma omp barrier
#pragma omp single
    printf("timers: %d %d %d %d, %d %d %d %d\n", good[0], good[1], good[2], good[3], count_of[0],
           count_of[1], count_of[2], count_of[3]);
}

static void try_names(void) {
    static int found[threads], none[threads], wrong[threads], named[threads];
    char given[16], text[16] = "";
    const int to = (self + 1) % threads;
    found[self] = pthread_kill(name[to], 0);
    none[self] = (int)syscall(SYS_tgkill, getpid(), id[to], 0);
    wrong[self] = pthread_kill(name[to], 1000);
    snprintf(given, sizeof given, "sent to %d", to);
    named[self] = pthread_setname_np(name[to], given);
    named[self] += pthread_setname_np(name[to], "a name that is too long") == ERANGE;
#pragma omp barrier
    named[self] +=
        10 * (pthread_getname_np(name[to], text, sizeof text) == 0 && strcmp(text, given) == 0);
    snprintf(given, sizeof given, "sent to %d", self);
    pthread_getname_np(pthread_self(), text, sizeof text);
    named[self] += 100 * (strcmp(text, given) == 0);
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < threads; ++i)
        printf("of thread %d: %d %d, %s, %d\n", i, found[i], none[i], strerror(wrong[i]), named[i]);
}

static void* wait_for_signal(void* slot) {
    self = *(int*)slot;
    name[self] = pthread_self();
    __atomic_store_n(&id[self], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    await(self);
    return NULL;
}

// A thread that one of the team has made, from another of the team.
static void try_made(void) {
    pthread_t made = 0;
    static int slot;
    if (self == threads - 1) {
        slot = 0;
        has_come[0] = count_of[0] = 0;
        id[0] = 0;
    }
#pragma omp barrier
    if (self == threads - 1) pthread_create(&made, NULL, wait_for_signal, &slot);
    if (self == 1) {
        while (__atomic_load_n(&id[0], __ATOMIC_ACQUIRE) == 0) go_on_waiting();
        pthread_kill(name[0], SIGUSR1);
    }
    if (self == threads - 1) pthread_join(made, NULL);
#pragma omp barrier
#pragma omp single
    printf("to a made thread: %d, %d in another\n", count_of[0], wrong_thread[0]);
}

int main(void) {
    clock_gettime(CLOCK_MONOTONIC, &start);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGRTMIN + 3, &action, NULL);
#pragma omp parallel num_threads(threads)
    {
        self = omp_get_thread_num();
        name[self] = pthread_self();
        id[self] = (pid_t)syscall(SYS_gettid);
        if (pipe(ends[self]) != 0) exit(1);
#pragma omp barrier
        for (unsigned i = 0; i < sizeof calls / sizeof *calls; ++i) try_call(i);
        for (unsigned i = 0; i < sizeof waits / sizeof *waits; ++i) try_wait(i);
        try_timers();
        try_names();
        try_made();
    }
    return 0;
}
