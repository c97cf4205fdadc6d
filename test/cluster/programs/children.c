// SPDX-License-Identifier: BSD-3-Clause
// Children of every kind see the arguments and variables that threads of other nodes wrote, nothing
// of the launcher's, and their status comes back.
#include <errno.h>
#include <omp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum { page = 4096 };
static char* words[4];

/// Strings on pages of their own, written by the last thread: invalid on node 0 afterwards.
static void write_words(const char* text) {
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == omp_get_num_threads() - 1) {
            strcpy(words[0], "sh");
            strcpy(words[1], "-c");
            strcpy(words[2], text);
        }
    }
}

static int status_of(pid_t child) {
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(void) {
    for (int i = 0; i < 3; ++i) words[i] = aligned_alloc(page, 2 * page);
    char** arguments = aligned_alloc(page, page);
    char* shell = aligned_alloc(page, page);
    strcpy(shell, "/bin/sh");
    setenv("GIVEN", "to children", 1);

    write_words("echo system: $GIVEN; env | grep -E '^(HIROBA_JOB|LD_PRELOAD|GLIBC_TUN)'; exit 3");
    fflush(stdout);
    printf("system: %d\n", WEXITSTATUS(system(words[2])));

    write_words("echo popen: $GIVEN; exit 4");
    FILE* const pipe = popen(words[2], "r");
    char line[100] = "";
    printf("%s", pipe != NULL && fgets(line, sizeof line, pipe) ? line : "nothing\n");
    printf("popen: %d\n", WEXITSTATUS(pclose(pipe)));

    pid_t child = -1;
    write_words("echo posix_spawn: $GIVEN; exit 5");
    memcpy(arguments, words, sizeof words);
    fflush(stdout);
    int error = posix_spawn(&child, shell, NULL, NULL, arguments, environ);
    printf("posix_spawn: %d, %d\n", error, status_of(child));
    write_words("echo posix_spawnp: $GIVEN; exit 6");
    fflush(stdout);
    error = posix_spawnp(&child, words[0], NULL, NULL, arguments, environ);
    printf("posix_spawnp: %d, %d\n", error, status_of(child));

    write_words("echo vfork and execve: $GIVEN; exit 7");
    fflush(stdout);
    if ((child = vfork()) == 0) {
        execve(shell, arguments, environ);
        _exit(127);
    }
    printf("vfork: %d\n", status_of(child));

    printf("no such program: %d\n",
           execl("/no/such/program", words[0], words[1], NULL) == -1 && errno == ENOENT);
    write_words("echo execlp: $GIVEN; exit 9");
    fflush(stdout);
    execlp(words[0], words[0], words[1], words[2], (char*)NULL);
    return 1;
}
