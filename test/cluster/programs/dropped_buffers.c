// SPDX-License-Identifier: BSD-3-Clause
// The kernel may drop the mapping of any page, to swap it out say, and finds it again by itself;
// a page that lies in memory shared by nodes it finds only with help. Here a thread waits inside
// a read or a write while its buffer's pages are dropped: the call must end as if nothing had been,
// and one that is short on the bare machine must be short here.
#define _GNU_SOURCE
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { bytes = 8192, rounds = 20, pipe_bytes = 65536 };
static _Alignas(16384) char buffer[bytes];
static int ends[2];
static volatile long waiter;
static long process;  // a descriptor of this one

static int waits(void) {
    char path[64], line[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/syscall", waiter);
    FILE* const file = fopen(path, "r");
    if (file == NULL) return 0;
    const int is_call = fgets(line, sizeof line, file) != NULL &&
                        (strncmp(line, "0 ", 2) == 0 || strncmp(line, "1 ", 2) == 0 ||
                         strncmp(line, "19 ", 3) == 0 || strncmp(line, "20 ", 3) == 0);
    fclose(file);
    return is_call;
}

// The same memory may be mapped elsewhere too, where its use would keep the page.
static void drop_other_mappings(unsigned long inode, unsigned long offset) {
    char line[512];
    FILE* const maps = fopen("/proc/self/maps", "r");
    while (inode != 0 && fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end, from, node;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %lu", &begin, &end, &from, &node) != 4) continue;
        char* const there = (char*)begin + (offset - from);
        if (node != inode || offset < from || offset >= from + (end - begin)) continue;
        if (there != buffer) madvise(there, bytes, MADV_DONTNEED);
    }
    fclose(maps);
}

static int round_now;

// All of the buffer, or in each second round what lies behind its first page: what the call moves
// ends there.
static char* first_dropped(void) { return round_now % 2 == 0 ? buffer : buffer + 4096; }

static void drop(void) {
    char line[512];
    unsigned long begin, end, from, node, inode = 0, offset = 0;
    FILE* const maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %*s %lx %*s %lu", &begin, &end, &from, &node) != 4) continue;
        if ((unsigned long)buffer < begin || (unsigned long)buffer >= end) continue;
        inode = strstr(line, "memfd") != NULL ? node : 0;
        offset = from + ((unsigned long)buffer - begin);
    }
    fclose(maps);
    drop_other_mappings(inode, offset);
    // The pages go if the machine can spare them; nothing of them is lost. As from outside: advice
    // that the process itself gives about memory shared by nodes does not reach the kernel.
    const struct iovec pages = {first_dropped(), (size_t)(buffer + bytes - first_dropped())};
    if (syscall(SYS_process_madvise, process, &pages, 1l, (long)MADV_PAGEOUT, 0l) !=
        (long)pages.iov_len) {
        perror("process_madvise");
        exit(1);
    }
}

static void* wait_in_read(void* got) {
    waiter = syscall(SYS_gettid);
    *(long*)got = read(ends[0], buffer, bytes);
    return NULL;
}

static void* wait_in_write(void* got) {
    waiter = syscall(SYS_gettid);
    *(long*)got = write(ends[1], buffer, bytes);
    return NULL;
}

// The second part begins in the middle of the first page.
static struct iovec parts[2] = {{buffer, 1000}, {buffer + 1000, bytes - 1000}};

static void* wait_in_readv(void* got) {
    waiter = syscall(SYS_gettid);
    *(long*)got = readv(ends[0], parts, 2);
    return NULL;
}

static void* wait_in_writev(void* got) {
    waiter = syscall(SYS_gettid);
    *(long*)got = writev(ends[1], parts, 2);
    return NULL;
}

static long while_dropped(void* (*call)(void*), void (*let_go)(void)) {
    static long got;
    pthread_t thread;
    waiter = 0;
    got = -1;
    pthread_create(&thread, NULL, call, &got);
    while (waiter == 0 || !waits()) usleep(100);
    drop();
    let_go();
    pthread_join(thread, NULL);
    return got;
}

static void must_be_whole(const char* call, long got) {
    if (got == bytes) return;
    printf("%s: %ld of %d bytes\n", call, got, bytes);
    exit(1);
}

static char scratch[pipe_bytes];
static void fill_pipe(void) { (void)!write(ends[1], scratch, bytes); }
static void empty_pipe(void) { (void)!read(ends[0], scratch, pipe_bytes); }

// What there is fills the first page: the rest is not to be waited for.
static void fill_half(void) { (void)!write(ends[1], scratch, bytes / 2); }

static void must_be_half(const char* call, long got) {
    if (got == bytes / 2) return;
    printf("%s: %ld of %d bytes\n", call, got, bytes / 2);
    exit(1);
}

// A datagram that fills the first page is one, and the next another.
static int datagrams[2];
static void* wait_for_datagram(void* got) {
    waiter = syscall(SYS_gettid);
    *(long*)got = read(datagrams[0], buffer, bytes);
    return NULL;
}
static void send_two(void) {
    (void)!write(datagrams[1], scratch, bytes / 2);
    (void)!write(datagrams[1], scratch, bytes / 2);
}

static void short_counts(void) {
    round_now = 1;
    must_be_half("a pipe's read", while_dropped(wait_in_read, fill_half));
    (void)!socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams);
    must_be_half("a datagram's read", while_dropped(wait_for_datagram, send_two));
    must_be_half("the next one's", read(datagrams[0], buffer, bytes));
    close(datagrams[0]);
    close(datagrams[1]);
}

int main(void) {
    long wrong = 0;
    (void)!pipe(ends);
    process = syscall(SYS_pidfd_open, (long)getpid(), 0l);
    fcntl(ends[0], F_SETPIPE_SZ, (int)pipe_bytes);
    for (int round = 1; round <= rounds; ++round) {
        round_now = round;
        memset(scratch, round, sizeof scratch);
        must_be_whole("read",
                      while_dropped(round % 4 < 2 ? wait_in_read : wait_in_readv, fill_pipe));
#pragma omp parallel for reduction(+ : wrong)
        for (int i = 0; i < bytes; ++i) wrong += buffer[i] != (char)round;

        memset(buffer, -round, bytes);
        (void)!write(ends[1], scratch, pipe_bytes);
        must_be_whole("write",
                      while_dropped(round % 4 < 2 ? wait_in_write : wait_in_writev, empty_pipe));
        memset(scratch, 0, bytes);
        (void)!read(ends[0], scratch, bytes);
        for (int i = 0; i < bytes; ++i) wrong += scratch[i] != (char)-round;
    }
    short_counts();
    printf("%d rounds, wrong bytes %ld\n", rounds, wrong);
    return 0;
}
