// SPDX-License-Identifier: BSD-3-Clause
// Lines of all threads, each printed in one call or between flockfile() and funlockfile(), come out
// whole, whatever stdout's buffer is. The lines come in any order. Argument: that buffer.
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/// Longer than PIPE_BUF, and than libc's buffer of a pipe; shorter than what libc itself cuts
/// without a buffer.
enum { lines = 3000, long_bytes = 7000 };

static void set_buffer(const char* how) {
    static char own[700];
    if (strcmp(how, "line") == 0) setlinebuf(stdout);
    if (strcmp(how, "none") == 0) setbuf(stdout, NULL);
    if (strcmp(how, "own") == 0) setvbuf(stdout, own, _IOFBF, sizeof own);
}

static void print(int i, const char* tail) {
    switch (i % 6) {
        case 0: printf("line %05d, then %.*s\n", i, i % 97, tail); break;
        case 1:
            flockfile(stdout);
            printf("locked %05d ", i);
            fputs("in pieces ", stdout);
            flockfile(stdout);
            for (const char* c = "by characters "; *c != '\0'; ++c) putc_unlocked(*c, stdout);
            funlockfile(stdout);
            printf("to the end %05d\n", i);
            funlockfile(stdout);
            break;
        case 2: puts(tail + i % 97); break;
        case 3: printf("long %05d %.*s\n", i, i % 60 == 3 ? long_bytes : 300, tail); break;
        case 4: fwrite("of bytes\n", 1, 9, stdout); break;
        default:
            if (ftrylockfile(stdout) != 0) flockfile(stdout);
            printf("tried %05d ", i);
            printf("and had\n");
            funlockfile(stdout);
    }
}

int main(int count, char** arguments) {
    char tail[long_bytes + 1];
    memset(tail, '.', long_bytes);
    tail[long_bytes] = '\0';
    tail[120] = '\0';
    char* const wide = malloc(long_bytes + 1);
    memset(wide, 'w', long_bytes);
    wide[long_bytes] = '\0';
    if (count > 1) set_buffer(arguments[1]);
#pragma omp parallel
    {
#pragma omp barrier
#pragma omp for schedule(static, 1)
        for (int i = 0; i < lines; ++i) print(i, i % 6 == 3 ? wide : tail);
    }
    if (count < 2 || strcmp(arguments[1], "line") != 0) return 0;
        // What a line holds is out, though the process ends without a word.
#pragma omp parallel
    printf("thread %d was here\n", omp_get_thread_num());
    _exit(0);
}
