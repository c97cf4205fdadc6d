// SPDX-License-Identifier: BSD-3-Clause
// Calls that give a part of the program's memory a property of its own, by libc's functions and as
// bare system calls: all threads go on to see that memory, and what is given back is zero for all.
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { bytes = 8 << 20, from = (1 << 20) + 5 * 4096, part = 16 * 4096 };
static char *all, *some;

static long fill_and_sum(void) {
    for (int i = 0; i < bytes; i += 4096) all[i] = 1;
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (int i = 0; i < bytes; i += 4096) sum += all[i]++;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (int i = bytes - 4096; i >= 0; i -= 4096) sum += all[i];
    return sum;
}

/// A result that differs between machines (limits, NUMA) is not printed.
static void tell(const char* what, long result) {
    printf("%s: %ld, sum %ld\n", what, result, fill_and_sum());
}

static void tell_zero(const char* what, long result) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (int i = 0; i < bytes; i += 4096) sum += all[i];
    printf("%s: %ld, sum %ld\n", what, result, sum);
    fill_and_sum();
}

int main(void) {
    all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    some = all + from;
    unsigned long mask = 1;
    fill_and_sum();

    (void)!syscall(SYS_mbind, some, part, 1, NULL, 0, 0);
    tell("mbind, preferred", 0);
    (void)!syscall(SYS_mbind, some, part, 2, &mask, 64, 0);
    tell("mbind, bound", 0);
    (void)!mlock2(some, part, MLOCK_ONFAULT);
    tell("mlock2", 0);
    (void)!syscall(SYS_mlock, some, part);
    tell("bare mlock", 0);
    tell("bare munlock", syscall(SYS_munlock, some, part));
    (void)!mlockall(MCL_CURRENT | MCL_FUTURE);
    tell("mlockall", 0);
    tell("munlockall", munlockall());

    tell("posix_madvise", posix_madvise(some, part, POSIX_MADV_SEQUENTIAL));
    tell("posix_madvise, unaligned", posix_madvise(some + 1, part, POSIX_MADV_NORMAL));
    tell("bare madvise, not dumped", syscall(SYS_madvise, some, part, MADV_DONTDUMP));
    tell("bare madvise, not forked", syscall(SYS_madvise, some, part, MADV_DONTFORK));
    tell("bare mprotect", syscall(SYS_mprotect, some, part, PROT_READ | PROT_WRITE));
    tell("pkey_mprotect", pkey_mprotect(some, part, PROT_READ | PROT_WRITE, -1));
    const int failed = madvise(some + 1, part, MADV_DONTNEED);
    printf("unaligned: %d, errno %d\n", failed, errno);

    tell_zero("bare madvise, given back", syscall(SYS_madvise, some, part, MADV_DONTNEED));
    char* const more = (char*)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    all = more;
    tell("bare mmap", more == MAP_FAILED);
    all = (char*)syscall(SYS_mremap, more, bytes, 2L * bytes, MREMAP_MAYMOVE);
    tell("bare mremap", all == MAP_FAILED);
    printf("bare munmap: %ld\n", syscall(SYS_munmap, all, 2L * bytes));
    return 0;
}
