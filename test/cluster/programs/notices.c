// SPDX-License-Identifier: BSD-3-Clause
// Functions of the program that libc calls in threads it starts by itself (SIGEV_THREAD of timers
// and message queues), and lists of names that it looks up in such threads. They read what other
// nodes have written, and other nodes read what they write.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { numbers = 8192, timers = 4, names = 6 };

static long table[numbers];
static pthread_mutex_t latch = PTHREAD_MUTEX_INITIALIZER;
static sem_t told;
static struct { long calls, sum; } from_timers, from_queue, from_names;

static void fill(int by) {
#pragma omp parallel for schedule(static, 512)
    for (int i = 0; i < numbers; ++i) table[i] = (long)i * by;
}

static long sum_of_table(void) {
    long sum = 0;
    for (int i = 0; i < numbers; ++i) sum += table[i];
    return sum;
}

static void on_timer(union sigval value) {
    pthread_mutex_lock(&latch);
    from_timers.calls += 1;
    from_timers.sum += sum_of_table() * value.sival_int;
    pthread_mutex_unlock(&latch);
    sem_post(&told);
}

static void on_message(union sigval value) {
    pthread_mutex_lock(&latch);
    from_queue.calls += 1;
    from_queue.sum += sum_of_table() + *(int*)value.sival_ptr;
    pthread_mutex_unlock(&latch);
    sem_post(&told);
}

static void on_names(union sigval value) {
    const struct gaicb* const requests = value.sival_ptr;
    pthread_mutex_lock(&latch);
    for (int i = 0; i < names; ++i)
        from_names.sum += requests[i].ar_result->ai_addrlen + sum_of_table();
    pthread_mutex_unlock(&latch);
    sem_post(&told);
}

static void wait_for(int times) {
    for (int i = 0; i < times; ++i) sem_wait(&told);
}

static void by_timers(void) {
    fill(3);
    // One after another, as programs do that arm a timer for each wait; each in another thread.
#pragma omp parallel for schedule(static, 1) ordered
    for (int i = 0; i < timers; ++i) {
#pragma omp ordered
        {
            timer_t timer;
            struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                                     .sigev_notify_function = on_timer,
                                     .sigev_value.sival_int = i + 1};
            const struct itimerspec soon = {{0, 0}, {0, 1000000}};
            if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) perror("timer_create");
            timer_settime(timer, 0, &soon, NULL);
            wait_for(1);
            timer_delete(timer);
        }
    }
    printf("timers: %ld calls, sum %ld\n", from_timers.calls, from_timers.sum);
}

static void by_queue(void) {
    char name[40];
    int more = 7;
    snprintf(name, sizeof name, "/notices_%d", (int)getpid());
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 16};
    const mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    mq_unlink(name);
    for (int i = 0; i < 3; ++i) {
        char message[16] = "";
        struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                                 .sigev_notify_function = on_message,
                                 .sigev_value.sival_ptr = &more};
        fill(i + 5);
        if (mq_notify(queue, &event) != 0) perror("mq_notify");
        if (mq_send(queue, "news", 5, 0) != 0) perror("mq_send");
        wait_for(1);
        if (mq_receive(queue, message, sizeof message, NULL) != 5) perror("mq_receive");
    }
    mq_close(queue);
    printf("queue: %ld calls, sum %ld\n", from_queue.calls, from_queue.sum);
}

static void by_names(void) {
    static struct gaicb requests[names];
    static struct addrinfo hints = {.ai_family = AF_INET, .ai_flags = AI_NUMERICHOST};
    struct gaicb* list[names];
    for (int i = 0; i < names; ++i) {
        requests[i] =
            (struct gaicb){.ar_name = i % 2 ? "127.0.0.1" : "10.1.2.3", .ar_request = &hints};
        list[i] = &requests[i];
    }
    struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                             .sigev_notify_function = on_names,
                             .sigev_value.sival_ptr = requests};
    fill(11);
    printf("names: %d", getaddrinfo_a(GAI_NOWAIT, list, names, &event));
    wait_for(1);
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static, 1)
    for (int i = 0; i < names; ++i)
        sum += gai_error(list[i]) * 1000 + list[i]->ar_result->ai_addr->sa_family;
    for (int i = 0; i < names; ++i) freeaddrinfo(list[i]->ar_result);
    printf(", families %ld, sum %ld\n", sum, from_names.sum);
    list[1]->ar_name = "no address";
    printf("waited: %d", getaddrinfo_a(GAI_WAIT, list, 2, NULL));
    printf(" %d %d\n", gai_error(list[0]), gai_error(list[1]) == EAI_NONAME);
    freeaddrinfo(list[0]->ar_result);
}

int main(void) {
    sem_init(&told, 0, 0);
    by_timers();
    by_queue();
    by_names();
    return 0;
}
