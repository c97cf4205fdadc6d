// SPDX-License-Identifier: BSD-3-Clause
// Each way a program can end has the exit status and the output of the bare program.
// argv: how (return, exit, _exit, quick_exit, abort, crash), where (main, region), status.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void at_exit(void) { printf("atexit handler\n"); }
static void at_quick(void) {
    printf("at_quick_exit handler\n");
    fflush(stdout);
}

static void end(const char* how, int status) {
    if (!strcmp(how, "exit")) exit(status);
    if (!strcmp(how, "_exit")) _exit(status);
    if (!strcmp(how, "quick_exit")) quick_exit(status);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "crash")) *(volatile int*)(long)status = 1;
}

int main(int argc, char** argv) {
    if (argc != 4) return 99;
    const int status = atoi(argv[3]);
    atexit(at_exit);
    at_quick_exit(at_quick);
    int sum = 0;
#pragma omp parallel reduction(+ : sum)
    sum += omp_get_thread_num();
    printf("sum %d of %d threads\n", sum, omp_get_max_threads());
    fflush(stdout);

    if (!strcmp(argv[2], "main")) {
        end(argv[1], status);
    } else {
#pragma omp parallel
        {
#pragma omp barrier
            if (omp_get_thread_num() == omp_get_num_threads() - 1) end(argv[1], status);
#pragma omp barrier
        }
    }
    return status;
}
