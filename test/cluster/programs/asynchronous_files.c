// SPDX-License-Identifier: BSD-3-Clause
// POSIX asynchronous input and output on memory that other nodes have written, or hold.
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { bytes = 1 << 18, parts = 4, part_bytes = bytes / parts };

static unsigned char *from, *to;
static sem_t told;
static volatile sig_atomic_t signalled;

static void fill(unsigned char* buffer, int by) {
#pragma omp parallel for schedule(static, 4096)
    for (int i = 0; i < bytes; ++i) buffer[i] = (unsigned char)(i * by);
}

static long sum_of(const unsigned char* buffer) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static, 4096)
    for (int i = 0; i < bytes; ++i) sum += (long)buffer[i] * (i % 251);
    return sum;
}

static void in_thread(union sigval value) {
    *(int*)value.sival_ptr += 1;
    sem_post(&told);
}
static void on_signal(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    signalled = info->si_code == SI_ASYNCIO ? info->si_value.sival_int : -1;
}

static int wait_for(struct aiocb* request) {
    const struct aiocb* list[] = {request};
    while (aio_error(request) == EINPROGRESS) aio_suspend(list, 1, NULL);
    return aio_error(request);
}

int main(int argc, char** argv) {
    if (argc > 1) {
        int ends[2];
        char letter;
        struct aiocb request = {.aio_buf = &letter, .aio_nbytes = 1};
        if (pipe(ends) != 0) return 2;
        request.aio_fildes = ends[0];
        return aio_read(&request) != 0 && errno == ENOSYS;
    }
    char name[] = "/tmp/aio_XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    from = malloc(bytes);
    to = malloc(bytes);
    fill(from, 7);
    fill(to, 1);

    int calls = 0;
    sem_init(&told, 0, 0);
    struct aiocb write_all = {.aio_fildes = file, .aio_buf = from, .aio_nbytes = bytes};
    write_all.aio_sigevent.sigev_notify = SIGEV_THREAD;
    write_all.aio_sigevent.sigev_notify_function = in_thread;
    write_all.aio_sigevent.sigev_value.sival_ptr = &calls;
    printf("write %d", aio_write(&write_all));
    sem_wait(&told);
    printf(" %d %zd, calls %d\n", wait_for(&write_all), aio_return(&write_all), calls);

    struct aiocb flush = {.aio_fildes = file};
    printf("flush %d", aio_fsync(O_SYNC, &flush));
    printf(" %d\n", wait_for(&flush));

    struct aiocb reads[parts], *list[parts];
    memset(reads, 0, sizeof reads);
    for (int i = 0; i < parts; ++i) {
        reads[i].aio_fildes = file;
        reads[i].aio_buf = to + i * part_bytes;
        reads[i].aio_nbytes = part_bytes;
        reads[i].aio_offset = i * part_bytes;
        reads[i].aio_lio_opcode = LIO_READ;
        list[i] = &reads[i];
    }
    printf("reads %d", lio_listio(LIO_WAIT, list, parts, NULL));
    for (int i = 0; i < parts; ++i) printf(" %zd", aio_return(&reads[i]));
    printf("\nsums equal %d\n", sum_of(from) == sum_of(to));

    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR2, &action, NULL);
    fill(to, 1);
    struct aiocb read_all = {.aio_fildes = file, .aio_buf = to, .aio_nbytes = 2 * bytes};
    read_all.aio_nbytes = bytes;
    read_all.aio_offset = bytes / 2;
    read_all.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
    read_all.aio_sigevent.sigev_signo = SIGUSR2;
    read_all.aio_sigevent.sigev_value.sival_int = 41;
    printf("read %d", aio_read(&read_all));
    while (!signalled) usleep(1000);
    printf(" %d %zd, signal %d, sum %ld\n", wait_for(&read_all), aio_return(&read_all),
           (int)signalled, sum_of(to));

    struct aiocb wrong = {.aio_fildes = 999, .aio_buf = to, .aio_nbytes = 5};
    const int refused = aio_read(&wrong);
    printf("no file %d\n", (refused == 0 ? wait_for(&wrong) : errno) == EBADF);
    return 0;
}
