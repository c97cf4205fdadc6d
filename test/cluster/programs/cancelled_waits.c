// SPDX-License-Identifier: BSD-3-Clause
// Each node makes a thread that waits in a cancellation point of POSIX, for each of them; a thread
// of another node cancels it. It ends there, its cleanup handlers run, innermost first, and who
// joins it is told so. Then threads that compute, by type and state of cancellation.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

enum { most = 64 };
static struct place {
    pthread_t thread;
    _Atomic int is_ready, cleaned, steps;
    int pipe[2], pair[2], full[2];
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    mtx_t lock;
    cnd_t news;
    char name[64];
    void (*wait)(struct place*);
    volatile double values[2048];
} places[most];

static const struct timespec later = {1000000, 0}, at_far_time = {4000000000, 0};
static char byte[65536];
static struct iovec vector = {byte, sizeof byte};
static struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

static void of_pause(struct place* p) { (void)p, pause(); }
static void of_sleep(struct place* p) { (void)p, sleep(1000000); }
static void of_usleep(struct place* p) { (void)p, usleep(900000000); }
static void of_nanosleep(struct place* p) { (void)p, nanosleep(&later, NULL); }
static void of_clock(struct place* p) {
    (void)p, clock_nanosleep(CLOCK_MONOTONIC, 0, &later, NULL);
}
static void of_thrd_sleep(struct place* p) { (void)p, thrd_sleep(&later, NULL); }
static void of_read(struct place* p) { (void)!read(p->pipe[0], byte, 1); }
static void of_readv(struct place* p) { (void)!readv(p->pipe[0], &vector, 1); }
static void of_write(struct place* p) {
    while (write(p->full[1], byte, sizeof byte) > 0)
        ;
}
static void of_writev(struct place* p) {
    while (writev(p->full[1], &vector, 1) > 0)
        ;
}
static void of_recv(struct place* p) { recv(p->pair[0], byte, 1, 0); }
static void of_recvfrom(struct place* p) { recvfrom(p->pair[0], byte, 1, 0, NULL, NULL); }
static void of_recvmsg(struct place* p) {
    struct msghdr own = message;
    recvmsg(p->pair[0], &own, 0);
}
static void of_send(struct place* p) {
    while (send(p->pair[0], byte, sizeof byte, 0) > 0)
        ;
}
static void of_sendmsg(struct place* p) {
    while (sendmsg(p->pair[0], &message, 0) > 0)
        ;
}
static void of_accept(struct place* p) {
    (void)p;
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const struct sockaddr address = {AF_UNIX, ""};
    if (bind(fd, &address, sizeof(sa_family_t)) == 0 && listen(fd, 1) == 0) accept(fd, NULL, NULL);
}
static void of_poll(struct place* p) { poll(&(struct pollfd){p->pipe[0], POLLIN, 0}, 1, -1); }
static void of_ppoll(struct place* p) {
    ppoll(&(struct pollfd){p->pipe[0], POLLIN, 0}, 1, NULL, NULL);
}
static int of_main[2];  ///< whose numbers are small enough for an fd_set
static void of_select(struct place* p) {
    (void)p;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(of_main[0], &set);
    select(of_main[0] + 1, &set, NULL, NULL, NULL);
}
static void of_pselect(struct place* p) {
    (void)p;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(of_main[0], &set);
    pselect(of_main[0] + 1, &set, NULL, NULL, NULL, NULL);
}
static void of_epoll(struct place* p) {
    struct epoll_event event = {.events = EPOLLIN};
    const int fd = epoll_create1(0);
    epoll_ctl(fd, EPOLL_CTL_ADD, p->pipe[0], &event);
    epoll_wait(fd, &event, 1, -1);
}
static void of_epoll_pwait(struct place* p) {
    struct epoll_event event = {.events = EPOLLIN};
    const int fd = epoll_create1(0);
    epoll_ctl(fd, EPOLL_CTL_ADD, p->pipe[0], &event);
    epoll_pwait(fd, &event, 1, -1, NULL);
}
static void of_sem(struct place* p) { sem_wait(&p->semaphore); }
static void of_sem_timed(struct place* p) { sem_timedwait(&p->semaphore, &at_far_time); }
static void of_sem_clock(struct place* p) {
    sem_clockwait(&p->semaphore, CLOCK_MONOTONIC, &at_far_time);
}
static void unlock(void* mutex) { pthread_mutex_unlock(mutex); }
static void unlock_c11(void* mutex) { mtx_unlock(mutex); }
static void of_cond(struct place* p) {
    pthread_mutex_lock(&p->mutex);
    pthread_cleanup_push(unlock, &p->mutex);
    for (;;) pthread_cond_wait(&p->condition, &p->mutex);
    pthread_cleanup_pop(1);
}
static void of_cond_timed(struct place* p) {
    pthread_mutex_lock(&p->mutex);
    pthread_cleanup_push(unlock, &p->mutex);
    while (pthread_cond_timedwait(&p->condition, &p->mutex, &at_far_time) == 0)
        ;
    pthread_cleanup_pop(1);
}
static void of_cond_clock(struct place* p) {
    pthread_mutex_lock(&p->mutex);
    pthread_cleanup_push(unlock, &p->mutex);
    while (pthread_cond_clockwait(&p->condition, &p->mutex, CLOCK_MONOTONIC, &at_far_time) == 0)
        ;
    pthread_cleanup_pop(1);
}
static void of_cnd(struct place* p) {
    mtx_lock(&p->lock);
    pthread_cleanup_push(unlock_c11, &p->lock);
    for (;;) cnd_wait(&p->news, &p->lock);
    pthread_cleanup_pop(1);
}
static sigset_t one_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return set;
}
static void of_sigwait(struct place* p) {
    (void)p;
    const sigset_t set = one_signal();
    int number;
    sigwait(&set, &number);
}
static void of_sigwaitinfo(struct place* p) {
    (void)p;
    const sigset_t set = one_signal();
    sigwaitinfo(&set, NULL);
}
static void of_sigtimedwait(struct place* p) {
    (void)p;
    const sigset_t set = one_signal();
    sigtimedwait(&set, NULL, &later);
}
static void of_sigsuspend(struct place* p) {
    (void)p;
    const sigset_t set = one_signal();
    sigsuspend(&set);
}
static void* sleep_long(void* unused) {
    sleep(1000000);
    return unused;
}
static void end_thread(void* thread) {
    pthread_cancel(*(pthread_t*)thread);
    pthread_join(*(pthread_t*)thread, NULL);
}
static void of_join(struct place* p) {
    (void)p;
    pthread_t other;
    pthread_create(&other, NULL, sleep_long, NULL);
    pthread_cleanup_push(end_thread, &other);
    pthread_join(other, NULL);
    pthread_cleanup_pop(0);
}
static void of_open(struct place* p) {
    mkfifo(p->name, 0600);
    open(p->name, O_RDONLY);
}
static void of_getc(struct place* p) {
    FILE* const stream = fdopen(p->pipe[0], "r");
    char text[8];
    (void)!fread(text, 1, sizeof text, stream);
}
static void of_msgrcv(struct place* p) {
    (void)p;
    struct {
        long kind;
        char text[8];
    } got;
    const int queue = msgget(IPC_PRIVATE, 0600);
    msgctl(queue, IPC_STAT, NULL);
    msgrcv(queue, &got, sizeof got.text, 0, 0);
}

static const struct row {
    const char* name;
    void (*wait)(struct place*);
} rows[] = {
#define ROW(name) \
    { #name, name }
    ROW(of_pause),      ROW(of_sleep),       ROW(of_usleep),      ROW(of_nanosleep),
    ROW(of_clock),      ROW(of_thrd_sleep),  ROW(of_read),        ROW(of_readv),
    ROW(of_write),      ROW(of_writev),      ROW(of_recv),        ROW(of_recvfrom),
    ROW(of_recvmsg),    ROW(of_send),        ROW(of_sendmsg),     ROW(of_accept),
    ROW(of_poll),       ROW(of_ppoll),       ROW(of_select),      ROW(of_pselect),
    ROW(of_epoll),      ROW(of_epoll_pwait), ROW(of_sem),         ROW(of_sem_timed),
    ROW(of_sem_clock),  ROW(of_cond),        ROW(of_cond_timed),  ROW(of_cond_clock),
    ROW(of_cnd),        ROW(of_sigwait),     ROW(of_sigwaitinfo), ROW(of_sigtimedwait),
    ROW(of_sigsuspend), ROW(of_join),        ROW(of_open),        ROW(of_getc),
    ROW(of_msgrcv)};

static void clean_outer(void* at) {
    struct place* const p = at;
    p->cleaned = p->cleaned * 10 + 2;
}
static void clean_inner(void* at) {
    struct place* const p = at;
    p->cleaned = p->cleaned * 10 + 1;
}

static void refuse_for_a_while(struct place* p);

static void* waits(void* at) {
    struct place* const p = at;
    pthread_cleanup_push(clean_outer, p);
    pthread_cleanup_push(clean_inner, p);
    // Before it may be cancelled.
    if (p->wait == refuse_for_a_while) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    p->is_ready = 1;
    p->wait(p);
    p->steps = 1;  // it came back
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

/// Ends in the middle of its loop.
static void compute(struct place* p) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (long i = 0;; ++i) p->values[i % 2048] += 1.0;
}
/// Ends where it looks.
static void compute_and_look(struct place* p) {
    for (long i = 0;; ++i) {
        p->values[i % 2048] += 1.0;
        if (i % 4096 == 0) pthread_testcancel();
    }
}
/// Is not disturbed before it says that it may.
static void refuse_for_a_while(struct place* p) {
    const struct timespec span = {0, 60000000};
    const int slept = nanosleep(&span, NULL), got = sem_trywait(&p->semaphore);
    int state = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    if (slept == 0 && got == -1 && state == PTHREAD_CANCEL_DISABLE) p->cleaned = 3;
    for (;;)
        pthread_testcancel(), sched_yield();  // whether it has been cancelled by now or will be
}
static void cancel_itself(struct place* p) {
    (void)p;
    pthread_cancel(pthread_self());
    sleep(1000000);
}

static void prepare(struct place* p, void (*wait)(struct place*)) {
    (void)!pipe(p->pipe), (void)!pipe(p->full), socketpair(AF_UNIX, SOCK_STREAM, 0, p->pair);
    sem_init(&p->semaphore, 0, 0);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->condition, NULL);
    mtx_init(&p->lock, mtx_plain);
    cnd_init(&p->news);
    snprintf(p->name, sizeof p->name, "fifo.%d.%d", (int)getpid(), omp_get_thread_num());
    unlink(p->name);
    p->wait = wait;
    p->is_ready = p->cleaned = p->steps = 0;
}

static void close_all(struct place* p) {
    for (int i = 0; i < 2; ++i) close(p->pipe[i]), close(p->full[i]), close(p->pair[i]);
    unlink(p->name);
}

/// How many threads did not end as they should.
static int wrong_ends(void (*wait)(struct place*), int cleaned, int delay_us) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    {
        const int self = omp_get_thread_num(), all = omp_get_num_threads();
        struct place* const p = &places[self];
        prepare(p, wait);
        pthread_create(&p->thread, NULL, waits, p);
        while (!p->is_ready) usleep(100);
#pragma omp barrier
        usleep(delay_us);
        const int failure = pthread_cancel(places[(self + 1) % all].thread);
        void* result = NULL;
#pragma omp barrier  // Who is joined has no name any more: all have been cancelled.
        pthread_join(p->thread, &result);
        wrong +=
            failure != 0 || result != PTHREAD_CANCELED || p->cleaned != cleaned || p->steps != 0;
        wrong += pthread_mutex_trylock(&p->mutex) != 0 || mtx_trylock(&p->lock) != thrd_success;
        pthread_mutex_unlock(&p->mutex), mtx_unlock(&p->lock);
#pragma omp barrier
        close_all(p);
    }
    return wrong;
}

// Cancels main's thread, or a thread of a region on another node: refused on several nodes.
static void* cancel_victim(void* victim) {
    pthread_cancel(*(pthread_t*)victim);
    return NULL;
}

static void cancel_main(void) {
    pthread_t self = pthread_self(), other;
    pthread_create(&other, NULL, &cancel_victim, &self);
    for (;;) pause();
}

static void cancel_in_region(void) {
    static pthread_t victim;
    alarm(5);  // alone, the region waits for ever
#pragma omp parallel
    {
        if (omp_get_thread_num() == omp_get_num_threads() - 1) victim = pthread_self();
#pragma omp barrier
        if (omp_get_thread_num() == 0) cancel_victim(&victim);
#pragma omp barrier
        pthread_testcancel();
    }
    puts("behind the region");
}

int main(int argc, char** argv) {
    const char* const only = argc > 1 ? argv[1] : "";
    if (strcmp(only, "main") == 0) cancel_main();
    if (strcmp(only, "region") == 0) cancel_in_region();
    signal(SIGUSR2, SIG_IGN);
    (void)!pipe(of_main);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        if (strstr(rows[i].name, only) == NULL) continue;
        printf("%s: %d", rows[i].name, wrong_ends(rows[i].wait, 12, 0));
        printf(" %d wrong\n", wrong_ends(rows[i].wait, 12, 5000));
        fflush(stdout);
    }
    printf("computing: %d wrong\n", wrong_ends(compute, 12, 3000));
    printf("looking: %d wrong\n", wrong_ends(compute_and_look, 12, 3000));
    printf("refusing: %d wrong\n", wrong_ends(refuse_for_a_while, 312, 3000));
    printf("itself: %d wrong\n", wrong_ends(cancel_itself, 12, 3000));
    return 0;
}
