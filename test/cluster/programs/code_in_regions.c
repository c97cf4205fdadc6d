// SPDX-License-Identifier: BSD-3-Clause
// Code that threads of all nodes generate in regions, called by threads of all nodes: in memory
// mapped so, made so later, in a reservation, in blocks of malloc, through a second mapping of a
// file; written again by another thread than its maker (W^X), handed over by locks, freed and used
// again. What is data stays data.
#define _GNU_SOURCE
#include <omp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 4096, THREADS = 16, KINDS = 4, ROUNDS = 3, MANY = 4500, APART = 65536 };
typedef int Function(int);

static unsigned char* code[THREADS][KINDS];
static int wrong;

/// A function that adds `number` to its argument.
static void generate(unsigned char* at, int number) {
    const unsigned char bytes[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};  // lea number(%rdi),%eax; ret
    memcpy(at, bytes, sizeof bytes);
    memcpy(at + 2, &number, sizeof number);
}

static void check(const unsigned char* at, int number) {
    if (((Function*)at)(7) == number + 7) return;
#pragma omp atomic
    ++wrong;
}

static void protect(void* at, int protection) {
    if (mprotect(at, BYTES, protection) == 0) return;
#pragma omp atomic
    ++wrong;
}

static void* map(size_t bytes, int protection) {
    return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static unsigned char* make(int kind) {
    void* at;
    switch (kind) {
        case 0: return map(BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
        case 1: return map(BYTES, PROT_READ | PROT_WRITE);
        case 2: return map((size_t)1 << 26, PROT_NONE) + ((size_t)1 << 25);
        default: return posix_memalign(&at, BYTES, 2 * BYTES) == 0 ? at : NULL;
    }
}

static void write_code(int kind, unsigned char* at, int number) {
    if (kind > 0) protect(at, PROT_READ | PROT_WRITE);
    generate(at, number);
    if (kind > 0) protect(at, PROT_READ | PROT_EXEC);
}

static void call_all(int threads, int round) {
    for (int thread = 0; thread < threads; ++thread)
        for (int kind = 0; kind < KINDS; ++kind)
            check(code[thread][kind], 1000 * round + 10 * thread + kind);
}

/// Each round's code is written by another thread, in the same region or in the next.
static void make_and_call(int threads) {
#pragma omp parallel
    {
        const int self = omp_get_thread_num();
        for (int kind = 0; kind < KINDS; ++kind) code[self][kind] = make(kind);
        for (int round = 0; round < ROUNDS; ++round) {
#pragma omp barrier
            const int whose = (self + round) % threads;
            for (int kind = 0; kind < KINDS; ++kind)
                write_code(kind, code[whose][kind], 1000 * round + 10 * whose + kind);
#pragma omp barrier
            call_all(threads, round);
        }
    }
    call_all(threads, ROUNDS - 1);
#pragma omp parallel
    call_all(threads, ROUNDS - 1);
}

/// Written by one mapping of a file, executed by another.
static void make_in_files(int threads) {
    static unsigned char *writable[THREADS], *executable[THREADS];
    for (int in_region = 0; in_region < 2; ++in_region) {
#pragma omp parallel if (in_region)
        for (int self = in_region ? omp_get_thread_num() : 0; self < threads;
             self += omp_get_num_threads()) {
            const int fd = memfd_create("code", 0);
            if (ftruncate(fd, BYTES) != 0) protect(NULL, -1);
            writable[self] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            executable[self] = mmap(NULL, BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
            close(fd);
            generate(writable[self], 7000 + self);
        }
#pragma omp parallel
        {
            for (int i = 0; i < threads; ++i) check(executable[i], 7000 + i);
#pragma omp barrier
            const int self = omp_get_thread_num();
            munmap(writable[self], BYTES);
            munmap(executable[self], BYTES);
        }
    }
}

/// As a compiler that runs behind a lock, by whoever comes first.
static void make_behind_lock(void) {
    static unsigned char* shared[64];
#pragma omp parallel
    for (int i = 0; i < 64; ++i) {
        unsigned char* found;
#pragma omp critical
        {
            if (shared[i] == NULL) {
                shared[i] = make(1);
                write_code(1, shared[i], i);
            }
            found = shared[i];
        }
        check(found, i);
    }
}

/// What was code is data, and code again.
static void use_again(int threads) {
#pragma omp parallel
    {
        const int next = (omp_get_thread_num() + 1) % threads;
        munmap(code[next][0], BYTES);
        munmap(code[next][1], BYTES);
#pragma omp barrier
        int* const data = map(2 * BYTES, PROT_READ | PROT_WRITE);
        for (int i = 0; i < 2 * BYTES / 4; ++i) data[i] = next;
        for (int i = 0; i < 2 * BYTES / 4; ++i)
            if (data[i] != next) protect(NULL, -1);
        code[next][0] = (unsigned char*)data;
        write_code(1, code[next][0], 5000 + next);
#pragma omp barrier
        for (int i = 0; i < threads; ++i) check(code[i][0], 5000 + i);
    }
}

/// Apart, so that no two are one range.
static void make_many(void) {
    unsigned char* const all = map((size_t)MANY * APART, PROT_READ | PROT_WRITE);
#pragma omp parallel
    {
#pragma omp for schedule(static, 1)
        for (int i = 0; i < MANY; ++i) write_code(1, all + (size_t)i * APART, i);
#pragma omp for schedule(static, 1)
        for (int i = MANY; i > 0; --i) check(all + (size_t)(i - 1) * APART, i - 1);
#pragma omp for schedule(static, 7)
        for (int i = MANY; i > 0; --i) check(all + (size_t)(i - 1) * APART, i - 1);
    }
    munmap(all, (size_t)MANY * APART);
}

static sigjmp_buf back[THREADS];
static void on_fault(int signal, siginfo_t* info, void* context) {
    (void)signal, (void)context;
    siglongjmp(back[omp_get_thread_num()], info->si_code);
}

static void call_data(void) {
    static int refused;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    unsigned char* const data = map(BYTES, PROT_READ | PROT_WRITE);
    generate(data, 1);
#pragma omp parallel reduction(+ : refused)
    {
        const int code = sigsetjmp(back[omp_get_thread_num()], 1);
        if (code == 0)
            ((Function*)data)(1);
        else
            refused += code == SEGV_ACCERR;
    }
    printf("refused %d\n", refused);
}

int main(void) {
    const int threads = omp_get_max_threads();
    call_data();
    make_and_call(threads);
    make_behind_lock();
    make_in_files(threads);
    use_again(threads);
    make_many();
    printf("wrong %d\n", wrong);
    return 0;
}
