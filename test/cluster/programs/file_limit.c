// SPDX-License-Identifier: BSD-3-Clause
// A write that RLIMIT_FSIZE cuts short is short, without a signal; the next one gets it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

enum { bytes = 16384, limit = 10000 };

static char buffer[bytes];
static volatile sig_atomic_t told;

static void on_limit(int number) {
    (void)number;
    ++told;
}

static void show(const char* what, ssize_t done) {
    printf("%s: %zd bytes, %d signals\n", what, done, (int)told);
}

int main(void) {
    char path[] = "/tmp/file_limit_XXXXXX";
    const int fd = mkstemp(path);
    const struct rlimit least = {limit, limit};
    signal(SIGXFSZ, on_limit);
    if (fd < 0 || setrlimit(RLIMIT_FSIZE, &least) != 0) return 1;
#pragma omp parallel for
    for (int i = 0; i < bytes; ++i) buffer[i] = (char)(i % 61);

    show("write", write(fd, buffer, bytes));
    show("write again", write(fd, buffer, bytes));
    const struct iovec parts[2] = {{buffer, bytes / 2}, {buffer + bytes / 2, bytes / 2}};
    show("pwritev", pwritev(fd, parts, 2, 100));
    show("pwrite", pwrite(fd, buffer, bytes, limit - 1));
    show("pwrite at the limit", pwrite(fd, buffer, bytes, limit));

    char back[limit];
    if (pread(fd, back, sizeof back, 0) != sizeof back) return 1;
    if (memcmp(back + 100, buffer, limit - 101) != 0 || back[limit - 1] != buffer[0]) return 1;
    unlink(path);
    return 0;
}
