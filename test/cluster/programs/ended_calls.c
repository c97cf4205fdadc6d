// SPDX-License-Identifier: BSD-3-Clause
// Calls that wait on a descriptor which another thread has opened: a handler without SA_RESTART
// ends them, one with it does not, and poll() ends by either. Who waits is main, which a timer
// interrupts, and the last thread, which main does.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { calls = 9 };
static const char* const names[calls] = {"read",  "recv",   "accept", "eventfd", "poll",
                                         "ppoll", "select", "epoll",  "write"};
static int ends[2], full[2], pair[2], listener, counter, many;
static volatile sig_atomic_t handled;

static void count(int number) {
    (void)number;
    handled = handled + 1;
}

static void handle(int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count;
    action.sa_flags = flags;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

static void open_all(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (pipe(ends) != 0 || pipe(full) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 ||
        bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 4) != 0)
        exit(9);
    counter = eventfd(0, 0);
    many = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = 7};
    epoll_ctl(many, EPOLL_CTL_ADD, ends[0], &wanted);
    static char bytes[1 << 16];
    if (write(full[1], bytes, sizeof bytes) != sizeof bytes) exit(9);
}

static void close_all(void) {
    const int all[] = {ends[0], ends[1],  full[0], full[1], pair[0],
                       pair[1], listener, counter, many};
    for (unsigned i = 0; i < sizeof all / sizeof *all; ++i) close(all[i]);
}

/// @return its error number, 0 if it has come to an end otherwise
static int wait_by(int call) {
    char room[20];
    struct pollfd one = {ends[0], POLLIN, 0};
    struct epoll_event event;
    sigset_t none;
    fd_set reads;
    FD_ZERO(&reads);
    if (ends[0] < FD_SETSIZE) FD_SET(ends[0], &reads);
    sigemptyset(&none);
    long result = 0;
    switch (call) {
        case 0: result = read(ends[0], room, sizeof room); break;
        case 1: result = recv(pair[0], room, sizeof room, 0); break;
        case 2: result = accept(listener, NULL, NULL); break;
        case 3: result = read(counter, room, 8); break;
        case 4: result = poll(&one, 1, 20000); break;
        case 5: result = ppoll(&one, 1, NULL, &none); break;
        case 6: result = select(ends[0] + 1, &reads, NULL, NULL, NULL); break;
        case 7: result = epoll_wait(many, &event, 1, 20000); break;
        default: result = write(full[1], room, sizeof room);
    }
    return result < 0 ? errno : 0;
}

/// In the thread that does not wait: what the calls wait for.
static void give(int call) {
    static char bytes[1 << 16];
    switch (call) {
        case 0: call = write(ends[1], "word", 4) != 4; break;
        case 1: call = write(pair[1], "word", 4) != 4; break;
        default: call = read(full[0], bytes, sizeof bytes) != sizeof bytes;
    }
    if (call) exit(9);
}

static void by_timer(void) {
    int got[calls];
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) open_all();
    for (int i = 0; i < calls; ++i) {
        const struct itimerval soon = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
        sigset_t alarm, before;
        if (i == 6) continue;  // their numbers may be too large for an fd_set
        sigemptyset(&alarm);
        sigaddset(&alarm, SIGALRM);
        handled = 0;
        if (i == 5) sigprocmask(SIG_BLOCK, &alarm, &before);
        setitimer(ITIMER_REAL, &soon, NULL);
        got[i] = wait_by(i);
        setitimer(ITIMER_REAL, &never, NULL);
        if (i == 5) sigprocmask(SIG_SETMASK, &before, NULL);
        printf("main: %s: %s, handled %d\n", names[i], strerror(got[i]), handled > 0);
    }
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) close_all();
}

/// @param restarts  the handler lets the call go on, which then ends by what is given
static void by_thread(int restarts) {
    static int got[calls];
    static int entered, ended, seen;
    static pthread_t last;
    open_all();
    for (int i = 0; i < calls; ++i) {
        if (restarts && (i == 2 || i == 3 || (i > 4 && i < 8))) continue;
        entered = ended = seen = 0;
        handled = 0;
#pragma omp parallel
        {
            const int self = omp_get_thread_num();
            if (self == omp_get_num_threads() - 1) {
                last = pthread_self();
                handled = 0;
#pragma omp atomic write seq_cst
                entered = 1;
                got[i] = wait_by(i);
                const int times = handled;
#pragma omp atomic write seq_cst
                seen = times > 0;
#pragma omp atomic write seq_cst
                ended = 1;
            } else if (self == 0) {
                int now = 0;
                while (!now) {
#pragma omp atomic read seq_cst
                    now = entered;
                }
                usleep(20000);
                // One that comes before the wait ends nothing.
                for (int k = 0, done = 0; !done; ++k) {
                    pthread_kill(last, SIGUSR1);
                    usleep(20000);
                    if (restarts && k == 3 && i != 4) give(i == 8 ? 2 : i);
#pragma omp atomic read seq_cst
                    done = ended;
                }
            }
        }
        printf("last%s: %s: %s, handled %d\n", restarts ? ", goes on" : "", names[i],
               strerror(got[i]), seen);
    }
    close_all();
}

/// A wait for a child of another thread.
static void child(void) {
    int how = 0;
    pid_t made = -1;
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
        made = vfork();
        if (made == 0) {
            execlp("sleep", "sleep", "30", NULL);
            _exit(1);
        }
    }
    for (int any = 0; any < 2; ++any) {
        const struct itimerval soon = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &soon, NULL);
        const pid_t got = waitpid(any ? -1 : made, &how, 0);
        const int error = errno;
        setitimer(ITIMER_REAL, &never, NULL);
        printf("waitpid: %s\n", got == -1 ? strerror(error) : "a child");
    }
    kill(made, SIGKILL);
    printf("waitpid: %d\n", waitpid(-1, &how, 0) == made && WTERMSIG(how) == SIGKILL);
}

int main(void) {
    handle(0);
    by_timer();
    by_thread(0);
    child();
    handle(SA_RESTART);
    by_thread(1);
    return 0;
}
