// SPDX-License-Identifier: BSD-3-Clause
// What several nodes cannot do is refused with a line, and the program goes on as after any
// failure.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void* nothing(void* unused) { return unused; }

/// Makes all mappings the kernel allows, of pages whose neighbours have another protection, and a
/// thread that would need more.
static void want_mappings(void) {
    for (int protection = 0; mmap(NULL, 4096, PROT_EXEC | (protection ? PROT_READ : 0),
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0) != MAP_FAILED;)
        protection = !protection;
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    int outcome = 0, error = 0;
    char path[] = "/tmp/refusals_XXXXXX";
    const int fd = mkstemp(path);
    if (ftruncate(fd, 4096) != 0) return 2;
    unlink(path);
    if (strcmp(what, "shared") == 0) {
        int ends[2];
        if (pipe(ends) != 0) return 2;
        outcome = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ends[0], 0) == MAP_FAILED;
        error = errno;
    } else if (strcmp(what, "aio") == 0) {
        unsigned long context = 0;
        outcome = syscall(SYS_io_setup, 4, &context) != 0;
        error = errno;
    } else if (strcmp(what, "request") == 0) {
#pragma omp parallel
        if (omp_get_thread_num() == omp_get_num_threads() - 1) {
            struct fsxattr attributes;
            outcome = ioctl(fd, FS_IOC_FSGETXATTR, &attributes) != 0;
            error = errno;
        }
    } else if (strcmp(what, "huge") == 0) {
        // More than the machine has, less than the arena's address space.
        void* block = malloc((size_t)12 << 30);
        outcome = block == NULL;
        error = errno;
        free(block);
    } else if (strcmp(what, "machine") == 0) {
        // As much as the machine has: each byte is used twice.
        void* block = malloc((size_t)sysconf(_SC_PHYS_PAGES) * 4096);
        outcome = block == NULL;
        error = errno;
        free(block);
    }
    if (strcmp(what, "mappings") == 0) want_mappings();
#pragma omp parallel
    {}
    printf("%s %d %s\n", what, outcome, strerror(error));
    return outcome;
}
