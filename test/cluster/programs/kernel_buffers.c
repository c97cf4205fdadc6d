// SPDX-License-Identifier: BSD-3-Clause
// System calls read and write memory that other threads have just written, without EFAULT and
// without short counts.
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { count = 1 << 18 };
static unsigned int from[count], to[count];
static char path[64] = "/tmp/kernel_buffers_XXXXXX";
static struct stat status;

static long mismatches(unsigned int add) {
    long wrong = 0;
#pragma omp parallel for schedule(static, 1024) reduction(+ : wrong)
    for (int i = 0; i < count; ++i) wrong += to[i] != (unsigned int)i * 3 + add;
    return wrong;
}

static void fill(unsigned int add) {
#pragma omp parallel for schedule(static, 1024)
    for (int i = 0; i < count; ++i) from[i] = (unsigned int)i * 3 + add;
#pragma omp parallel for schedule(static, 512)
    for (int i = 0; i < count; ++i) to[i] = 0;
}

int main(void) {
    const int fd = mkstemp(path);
    fill(1);
    printf("write %zd\n", pwrite(fd, from, sizeof from, 0));
    ssize_t got = pread(fd, to, sizeof to, 0);
    printf("read %zd, wrong %ld\n", got, mismatches(1));

    fill(2);
    struct iovec out[2] = {{from, sizeof from / 2}, {from + count / 2, sizeof from / 2}};
    struct iovec in[2] = {{to, sizeof to / 2}, {to + count / 2, sizeof to / 2}};
    lseek(fd, 0, SEEK_SET);
    printf("writev %zd\n", writev(fd, out, 2));
    lseek(fd, 0, SEEK_SET);
    got = readv(fd, in, 2);
    printf("readv %zd, wrong %ld\n", got, mismatches(2));

    fill(3);
    FILE* file = fopen(path, "w+");
    char* buffer = malloc(1 << 16);
    setvbuf(file, buffer, _IOFBF, 1 << 16);
    printf("fwrite %zu\n", fwrite(from, sizeof *from, count, file));
    rewind(file);
    const size_t items = fread(to, sizeof *to, count, file);
    printf("fread %zu, wrong %ld\n", items, mismatches(3));
    fclose(file);
    free(buffer);

#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) memset(&status, 255, sizeof status);
    const int failed = stat(path, &status);
    printf("stat %d size %ld\n", failed, (long)status.st_size);
    close(fd);
    printf("unlink %d\n", unlink(path));
    return 0;
}
