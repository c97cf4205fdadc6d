// SPDX-License-Identifier: BSD-3-Clause
// A fatal `error` construct ends the job as it ends the bare program: gcc's runtime by exit(1),
// with handlers and what stdio holds; LLVM's by SIGABRT, whose handler is called. argv: where
// (main, region), and "handler" to handle SIGABRT.
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void at_exit(void) { printf("atexit handler\n"); }

static void on_abort(int signal) {
    (void)signal;
    static const char line[] = "SIGABRT handler\n";
    if (write(STDOUT_FILENO, line, sizeof line - 1) < 0) _exit(8);
    _exit(7);
}

#ifdef __clang__
// What clang 16 and later make of the directive, which older ones do not know.
void __kmpc_error(void* location, int severity, const char* message);
static void warn(void) { __kmpc_error(NULL, 1, "seen"); }
static void fail(void) { __kmpc_error(NULL, 2, "the end"); }
#else
static void warn(void) {
#pragma omp error at(execution) severity(warning) message("seen")
}
static void fail(void) {
#pragma omp error at(execution) severity(fatal) message("the end")
}
#endif

int main(int argc, char** argv) {
    if (argc < 2) return 99;
    atexit(at_exit);
    if (argc > 2) signal(SIGABRT, on_abort);
    int sum = 0;
#pragma omp parallel reduction(+ : sum)
    sum += omp_get_thread_num();
    printf("sum %d\n", sum);
    fflush(stdout);
    warn();
    if (!strcmp(argv[1], "main")) {
        printf("held by stdio\n");
        fail();
    }
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == omp_get_num_threads() - 1) fail();
#pragma omp barrier
    }
    return 0;
}
