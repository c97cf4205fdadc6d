// SPDX-License-Identifier: BSD-3-Clause
// The kernel may drop the mapping of any page, to swap it out say, and finds it again by itself;
// a page that lies in memory shared by nodes it finds only with help. Here a thread waits inside
// read() or write() while its buffer's pages are dropped: the call must end as if nothing had been.
#define _GNU_SOURCE
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { bytes = 8192, rounds = 20, pipe_bytes = 65536 };
static _Alignas(16384) char buffer[bytes];
static int ends[2];
static volatile long waiter;

static int waits(void) {
    char path[64], line[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/syscall", waiter);
    FILE* const file = fopen(path, "r");
    if (file == NULL) return 0;
    const int is_call = fgets(line, sizeof line, file) != NULL &&
                        (strncmp(line, "0 ", 2) == 0 || strncmp(line, "1 ", 2) == 0);
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
    // The pages go if the machine can spare them; nothing of them is lost.
    syscall(SYS_madvise, buffer, (long)bytes, (long)MADV_PAGEOUT);
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

int main(void) {
    long wrong = 0;
    (void)!pipe(ends);
    fcntl(ends[0], F_SETPIPE_SZ, (int)pipe_bytes);
    for (int round = 1; round <= rounds; ++round) {
        memset(scratch, round, sizeof scratch);
        must_be_whole("read", while_dropped(wait_in_read, fill_pipe));
#pragma omp parallel for reduction(+ : wrong)
        for (int i = 0; i < bytes; ++i) wrong += buffer[i] != (char)round;

        memset(buffer, -round, bytes);
        (void)!write(ends[1], scratch, pipe_bytes);
        must_be_whole("write", while_dropped(wait_in_write, empty_pipe));
        memset(scratch, 0, bytes);
        (void)!read(ends[0], scratch, bytes);
        for (int i = 0; i < bytes; ++i) wrong += scratch[i] != (char)-round;
    }
    printf("%d rounds, wrong bytes %ld\n", rounds, wrong);
    return 0;
}
