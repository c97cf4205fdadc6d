// SPDX-License-Identifier: BSD-3-Clause
// Standard streams that the program makes other files, by main or by its last thread: what all
// threads print goes there, in order, and comes back afterwards.
#define _GNU_SOURCE
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64], other[64];

static void show(const char* title, const char* name) {
    FILE* file = fopen(name, "r");
    char line[200];
    printf("--- %s\n", title);
    while (fgets(line, sizeof line, file) != NULL) fputs(line, stdout);
    fclose(file);
    fflush(stdout);
}

/// Each way of writing to standard output, by all threads in turn.
static void print(void) {
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 8; ++i) {
#pragma omp ordered
        {
            printf("printf %d\n", i);
            puts("puts");
            putchar('c');
            putchar_unlocked('u');
            fputc_unlocked('v', stdout);
            fputs_unlocked("\n", stdout);
            fwrite("fwrite\n", 1, 7, stdout);
            fflush(stdout);
            if (write(STDOUT_FILENO, "write\n", 6) != 6) abort();
        }
    }
}

static int redirect(int to, const char* name) {
    fflush(stdout);
    const int keep = dup(to), fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(fd, to);
    close(fd);
    return keep;
}

static void put_back(int keep, int to) {
    fflush(stdout);
    dup2(keep, to);
    close(keep);
}

static void by_main(void) {
    const int keep = redirect(STDOUT_FILENO, path);
    print();
    put_back(keep, STDOUT_FILENO);
    show("dup2", path);
    print();
    fflush(stdout);

    const int error = redirect(STDERR_FILENO, path);
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 8; ++i) {
#pragma omp ordered
        fprintf(stderr, "error %d\n", i);
    }
    put_back(error, STDERR_FILENO);
    show("stderr", path);

    const int again = dup(STDOUT_FILENO);
    close(STDOUT_FILENO);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    print();
    put_back(again, STDOUT_FILENO);
    printf("descriptor %d\n", fd);
    show("close and open", path);

    const int third = dup(STDOUT_FILENO);
    if (freopen(path, "w", stdout) == NULL) abort();
    print();
    put_back(third, STDOUT_FILENO);
    show("freopen", path);
}

/// The last thread redirects, in a region; the others see it behind the barrier.
static void in_region(void) {
    int keep = -1;
#pragma omp parallel
    {
        const int last = omp_get_num_threads() - 1;
        if (omp_get_thread_num() == last) keep = redirect(STDOUT_FILENO, other);
        for (int i = 0; i <= last; ++i) {
#pragma omp barrier
            if (omp_get_thread_num() == i) printf("in the region\n");
        }
#pragma omp barrier
        if (omp_get_thread_num() == last) put_back(keep, STDOUT_FILENO);
#pragma omp barrier
        if (omp_get_thread_num() == 0) {
            show("by the last thread", other);
            if (freopen(path, "w", stdout) == NULL) abort();
        }
#pragma omp barrier
        if (omp_get_thread_num() == last) {
            printf("into the second file\n");
            fflush(stdout);
            if (freopen(other, "w", stdout) == NULL) abort();
        }
#pragma omp barrier
        if (omp_get_thread_num() == 0) printf("into the third\n");
    }
    fflush(stdout);
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/redirected_%d", (int)getpid());
    snprintf(other, sizeof other, "/tmp/redirected_too_%d", (int)getpid());
    by_main();
    const int keep = dup(STDOUT_FILENO);
    in_region();
    dup2(keep, STDOUT_FILENO);
    show("freopen in a region", path);
    show("of the last thread", other);
    unlink(path);
    unlink(other);
    return 0;
}
