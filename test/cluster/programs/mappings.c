// SPDX-License-Identifier: BSD-3-Clause
// mmap and its kin: every thread sees what any has mapped.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static long sum_in_parallel(const int* from, long count) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (long i = 0; i < count; ++i) sum += from[i];
    return sum;
}

static void fill_in_parallel(int* to, long count, int by) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i) to[i] = (int)i * by;
}

static void anonymous(void) {
    const long count = 1 << 18;
    const size_t bytes = (size_t)count * sizeof(int);
    int* a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("zero %ld\n", sum_in_parallel(a, count));
    fill_in_parallel(a, count, 1);
    printf("sum %ld\n", sum_in_parallel(a, count));
    a = mremap(a, bytes, 4 * bytes, MREMAP_MAYMOVE);
    printf("grown %ld\n", sum_in_parallel(a, 4 * count));
    fill_in_parallel(a, 4 * count, 2);
    printf("sum %ld\n", sum_in_parallel(a, 4 * count));
    a = mremap(a, 4 * bytes, bytes, 0);
    printf("shrunk %ld\n", sum_in_parallel(a, count));
    printf("munmap %d\n", munmap(a, bytes));
    int* b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("zero again %ld\n", sum_in_parallel(b, count));
    // Piece by piece: what is left stays.
    fill_in_parallel(b, count, 3);
    printf("front %d\n", munmap(b, 4096));
    printf("back %d\n", munmap((char*)b + bytes - 8192, 8192));
    printf("left %ld\n", sum_in_parallel(b + 1024, count - 1024 - 2048));
    printf("rest %d\n", munmap((char*)b + 4096, bytes - 12288));
    int* c = NULL;
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1)
        c = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill_in_parallel(c, count, 5);
    printf("of another %ld\n", sum_in_parallel(c, count));
    madvise(c, bytes, MADV_DONTNEED);
    printf("not needed %ld\n", sum_in_parallel(c, count));
    printf("munmap %d\n", munmap(c, bytes));
    int* d = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int* e = mmap(d, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("reserved %d\n", d == e && mprotect(e, 2 * bytes, PROT_READ | PROT_WRITE) == 0);
    fill_in_parallel(e, 2 * count, 7);
    printf("sum %ld\n", sum_in_parallel(e, 2 * count));
    munmap(d, 2 * bytes);
}

static void of_files(void) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/mappings_%d", (int)getpid());
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    const long count = 10000;
    int* numbers = malloc((size_t)count * sizeof *numbers);
    fill_in_parallel(numbers, count, 1);
    if (write(fd, numbers, (size_t)count * sizeof *numbers) < 0) abort();
    free(numbers);
    int* a = mmap(NULL, 40000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    printf("file %ld\n", sum_in_parallel(a, count));
    printf("behind the end %d\n", a[count]);
    fill_in_parallel(a, count, 2);
    printf("private %ld\n", sum_in_parallel(a, count));
    int* b = mmap(NULL, 40000, PROT_READ, MAP_SHARED, fd, 0);
    printf("read only %ld\n", sum_in_parallel(b, count));
    int* c = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 8192);
    printf("offset %d\n", c[0]);
    munmap(a, 40000);
    munmap(b, 40000);
    munmap(c, 4096);
    void* d = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0);
    printf("bad descriptor %d %d\n", d == MAP_FAILED, errno);
    d = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("no bytes %d %d\n", d == MAP_FAILED, errno);
    close(fd);
    unlink(path);
}

static void program_break(void) {
    const char* before = sbrk(0);
    int* a = sbrk(1 << 16);
    printf("sbrk %d\n", (char*)a == before && (char*)sbrk(0) == before + (1 << 16));
    fill_in_parallel(a, 1 << 14, 3);
    printf("sum %ld\n", sum_in_parallel(a, 1 << 14));
    printf("brk %d\n", brk(a));
    printf("back %d\n", sbrk(0) == (void*)a);
}

int main(void) {
    anonymous();
    of_files();
    program_break();
    return 0;
}
