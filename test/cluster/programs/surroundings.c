// SPDX-License-Identifier: BSD-3-Clause
// Arguments, environment and what a child inherits are those of the bare program.
#define _GNU_SOURCE
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char** environ;

static int by_text(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

int main(int argc, char** argv, char** envp) {
    for (int i = 0; i < argc; ++i) printf("argument %d: <%s>\n", i, argv[i]);
    printf("argv ends: %d, envp is environ: %d, argv in order: %d\n", argv[argc] == NULL,
           envp == environ, envp == argv + argc + 1);
    printf("page size %lu\n", getauxval(AT_PAGESZ));

    int count = 0;
    while (environ[count]) ++count;
    char** sorted = malloc((size_t)(count + 1) * sizeof *sorted);
    memcpy(sorted, environ, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_text);
    for (int i = 0; i < count; ++i) printf("%s\n", sorted[i]);
    free(sorted);

    const char* const names[] = {"LD_PRELOAD", "LD_BIND_NOW", "GLIBC_TUNABLES", "HIROBA_JOB_RANK"};
    for (int i = 0; i < 4; ++i) {
        const char* const value = getenv(names[i]);
        printf("%s is %s\n", names[i], value ? value : "not set");
    }
    int firsts = 0;
#pragma omp parallel reduction(+ : firsts)
    firsts += gettid() == getpid();
    printf("main's thread has the number of the process: %d %d %d, and is found by it: %d\n",
           gettid() == getpid(), syscall(SYS_gettid) == getpid(), firsts,
           tgkill(getpid(), gettid(), 0));

    int seen = 0;
#pragma omp parallel reduction(+ : seen)
    seen += getenv("HIROBA_JOB_RANK") != NULL || getenv("LD_PRELOAD") != NULL;
    printf("threads that see the launcher's variables: %d\n", seen);
    fflush(stdout);
    const int status = system("env | grep -E '^(HIROBA_JOB_|LD_PRELOAD=)' ; exit 7");
    printf("child: %d\n", status);
    return 0;
}
