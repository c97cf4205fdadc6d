// SPDX-License-Identifier: BSD-3-Clause
// Numbers of descriptors, and programs that close all they do not know, in main and in a region.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int cells[100000];

static void work(const char* after) {
    long sum = 0;
    for (int round = 0; round < 3; ++round) {
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 100000; ++i) {
            cells[i] += i & 1;
            sum += cells[i];
        }
    }
    printf("%s: %ld\n", after, sum);
}

static void close_all(const char* how) {
    if (strcmp(how, "loop") == 0)
        for (int fd = 3; fd < 2048; ++fd) close(fd);
    if (strcmp(how, "from") == 0) closefrom(3);
    if (strcmp(how, "range") == 0) printf("range %d\n", close_range(3, ~0u, 0));
}

int main(int argc, char** argv) {
    const char* const how = argc > 1 ? argv[1] : "loop";
    const int first = open("/dev/null", O_RDWR), second = dup(first), third = dup2(first, 7);
    printf("opened as %d %d %d\n", first, second, third);
    work("opened");
    close_all(how);
    const int written = (int)write(third, "x", 1);
    printf("closed: %d %d\n", written, errno == EBADF);
    work("closed in main");
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) close_all(how);
    work("closed in a region");
    printf("opened as %d\n", open("/dev/null", O_RDWR));
    errno = 0;
    const int inverted = close_range(9, 8, 0);
    printf("inverted: %d %d\n", inverted, errno == EINVAL);
    return 0;
}
