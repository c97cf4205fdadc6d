// SPDX-License-Identifier: BSD-3-Clause
// What the kernel orders is ordered for memory, too: a count that each thread raises while it has a
// token of a pipe, a semaphore of System V, a lock on a file; and letters of both kinds of queue.
// The buffers lie in memory that others have just written.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <unistd.h>

enum { threads = 4, rounds = 60 };

struct Letter {
    long kind;
    int value;
};

static long count;
static int ends[2], semaphore;
static char name[64];
static struct sembuf up = {0, 1, 0}, down = {0, -1, 0};
static struct Letter letters[threads];

static void must(int holds, const char* what) {
    if (holds) return;
    perror(what);
    exit(1);
}

static void take_token(int own) {
    char token;
    (void)own;
    must(read(ends[0], &token, 1) == 1, "read");
}
static void leave_token(int own) {
    (void)own;
    must(write(ends[1], "x", 1) == 1, "write");
}
static void go_down(int own) {
    (void)own;
    must(semop(semaphore, &down, 1) == 0, "semop");
}
static void go_up(int own) {
    (void)own;
    must(semop(semaphore, &up, 1) == 0, "semop");
}
static void lock(int own) { must(flock(own, LOCK_EX) == 0, "flock"); }
static void unlock(int own) { must(flock(own, LOCK_UN) == 0, "flock"); }
static void lock_record(int own) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    must(fcntl(own, F_OFD_SETLKW, &all) == 0, "F_OFD_SETLKW");
}
static void unlock_record(int own) {
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    must(fcntl(own, F_OFD_SETLK, &all) == 0, "F_OFD_SETLK");
}

static void show_count(const char* what, void (*begin)(int), void (*end)(int)) {
    count = 0;
#pragma omp parallel num_threads(threads)
    {
        const int own = open(name, O_RDWR);
        for (int i = 0; i < rounds; ++i) {
            begin(own);
            ++count;
            end(own);
        }
        close(own);
    }
    printf("%s: %ld\n", what, count);
}

// What a thread has written before it sends is there for who receives.
static void show_letters(void) {
    static int written[threads][rounds], got, seen;
    const int letter_queue = msgget(IPC_PRIVATE, 0600);
    struct mq_attr shape = {.mq_maxmsg = 4, .mq_msgsize = 64};
    const mqd_t queue = mq_open(name + 4, O_RDWR | O_CREAT | O_EXCL, 0600, &shape);
    must(letter_queue >= 0 && queue >= 0, "queues");
    mq_unlink(name + 4);
#pragma omp parallel num_threads(threads) reduction(+ : got, seen)
    {
        const int me = omp_get_thread_num(), before = (me + threads - 1) % threads;
        for (int i = 0; i < rounds; ++i) {
            written[me][i] = i + 1;
            letters[me].kind = me + 1;
            letters[me].value = i;
            must(msgsnd(letter_queue, &letters[me], sizeof(int), 0) == 0, "msgsnd");
            struct Letter from;
            must(msgrcv(letter_queue, &from, sizeof(int), before + 1, 0) > 0, "msgrcv");
            got += from.value;
            seen += written[before][from.value] == from.value + 1;
        }
#pragma omp barrier
        for (int i = 0; i < rounds; ++i) {
            char text[64];
            if (me % 2 != 0) {
                written[me][i] = i + 100;
                snprintf(text, sizeof text, "%d %d", me, i);
                must(mq_send(queue, text, strlen(text) + 1, 1) == 0, "mq_send");
            } else {
                int from, at;
                must(mq_receive(queue, text, sizeof text, NULL) > 0, "mq_receive");
                must(sscanf(text, "%d %d", &from, &at) == 2, "sscanf");
                seen += written[from][at] == at + 100;
            }
        }
    }
    printf("letters: %d, %d seen\n", got, seen);
    msgctl(letter_queue, IPC_RMID, NULL);
    mq_close(queue);
}

// What a client has written before it connects is there for who accepts.
static void show_connections(void) {
    static int told, server;
    static struct sockaddr_in address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    server = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(server, (struct sockaddr*)&address, bytes) == 0 && listen(server, 1) == 0 &&
             getsockname(server, (struct sockaddr*)&address, &bytes) == 0,
         "bind");
    int seen = 0;
#pragma omp parallel num_threads(2) reduction(+ : seen)
    if (omp_get_thread_num() == 1) {
        const int client = socket(AF_INET, SOCK_STREAM, 0);
        told = 17;
        must(connect(client, (struct sockaddr*)&address, sizeof address) == 0, "connect");
        close(client);
    } else {
        const int connection = accept(server, NULL, NULL);
        seen = told;
        close(connection);
    }
    printf("connection: %d seen\n", seen);
    close(server);
}

int main(void) {
    const union {
        int value;
        void* pointer;
    } free_one = {1};
    snprintf(name, sizeof name, "/tmp/kernel_order_%d", getpid());
    close(open(name, O_RDWR | O_CREAT | O_TRUNC, 0600));
    must(pipe(ends) == 0 && write(ends[1], "x", 1) == 1, "pipe");
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    must(semctl(semaphore, 0, SETVAL, free_one) == 0, "semctl");
    show_count("pipe", &take_token, &leave_token);
    show_count("semaphore", &go_down, &go_up);
    show_count("flock", &lock, &unlock);
    show_count("lock of an open file", &lock_record, &unlock_record);
    show_letters();
    show_connections();
    semctl(semaphore, 0, IPC_RMID);
    unlink(name);
    return 0;
}
