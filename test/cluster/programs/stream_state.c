// SPDX-License-Identifier: BSD-3-Clause
// What stdio tells of a stream that another node has opened, and changes in it; what one node comes
// upon in a stream is the stream's; and a line that all threads read goes to one as a whole.
#define _GNU_SOURCE
#ifndef INLINED
#define __NO_INLINE__ 1  // the headers' versions look into the stream itself
#endif
#include <omp.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { lines_max = 120 };
static char lines[lines_max][100];
static int line_count;
static FILE *file, *child;

#define tell(call) snprintf(lines[line_count++], sizeof lines[0], "%.60s: %ld", #call, (long)(call))

static int is_last(void) { return omp_get_thread_num() == omp_get_num_threads() - 1; }
static int is_first(void) { return omp_get_thread_num() == 0; }

static void begin(void) {
    file = tmpfile();
    fputs("hello world\nline two\n", file);
    rewind(file);
    child = popen("echo from a child; exit 7", "r");
}

static void look(void) {
    char text[100] = "";
    fpos_t place;
    tell(__freading(file));
    tell(__fwriting(file));
    tell(__freadable(file) != 0);
    tell(__fwritable(file) != 0);
    tell(__flbf(file));
    tell(getc_unlocked(file));
    tell(__fbufsize(file));
    tell(__freading(file) != 0);
    tell(fileno_unlocked(file) > 2);
    tell(fgetpos(file, &place));
    tell(fread_unlocked(text, 1, 4, file));
    tell(memcmp(text, "ello", 4));
    tell(fsetpos(file, &place));
    tell(fgets_unlocked(text, 50, file) != NULL);
    tell(strcmp(text, "ello world\n"));
    tell(getw(file) == ('l' | 'i' << 8 | 'n' << 16 | 'e' << 24));
    tell(fgetc_unlocked(file));
    tell(feof_unlocked(file));
    tell(fgets(text, 50, file) != NULL);
    tell(strcmp(text, "two\n"));
    tell(fgets(text, 50, file) == NULL);
    tell(feof_unlocked(file) != 0);
    tell(feof(file) != 0);
    tell(ferror_unlocked(file));
    clearerr_unlocked(file);
    tell(feof(file));
    tell(fseek(file, 0, SEEK_END));
    tell(putw(0x41424344, file));
    tell(fputc_unlocked('x', file));
    tell(putc_unlocked('y', file));
    tell(fwrite_unlocked("abc", 1, 3, file));
    tell(__fpending(file));
    tell(__fwriting(file) != 0);
    __fpurge(file);
    tell(__fpending(file));
    tell(__fsetlocking(file, FSETLOCKING_QUERY));
    tell(__fsetlocking(file, FSETLOCKING_BYCALLER));
    tell(__fsetlocking(file, FSETLOCKING_INTERNAL) == FSETLOCKING_BYCALLER);
    rewind(file);
    char* line = NULL;
    size_t room = 0;
    tell(getline(&line, &room, file));
    tell(getdelim(&line, &room, ' ', file));
    tell(strcmp(line, "line "));
    free(line);
    tell(fgets(text, 50, child) != NULL);
    tell(strcmp(text, "from a child\n"));
    tell(WEXITSTATUS(pclose(child)));
}

static void print_lines(void) {
    for (int i = 0; i < line_count; ++i) puts(lines[i]);
    line_count = 0;
}

/// One thread comes to the end, another sees that and goes back, and the first reads again.
static void share_the_end(void) {
    file = tmpfile();
    fputs("one line\n", file);
    rewind(file);
#pragma omp parallel
    {
        char text[20] = "";
        if (is_last()) {
            tell(fgets(text, 20, file) != NULL);
            tell(fgetc(file));
        }
#pragma omp barrier
        if (is_first()) {
            tell(feof(file) != 0);
            rewind(file);
        }
#pragma omp barrier
        if (is_last()) {
            tell(feof(file));
            tell(fgetc(file));
            tell(fgets(text, 20, file) != NULL);
            tell(strcmp(text, "ne line\n"));
            while (fgetc(file) != EOF) continue;
            clearerr(file);
        }
#pragma omp barrier
        if (is_first()) tell(feof(file));
    }
    fclose(file);
    print_lines();
}

/// Some of them are longer than a message between nodes holds at first.
static void whole_lines(void) {
    enum { count = 3000 };
    long whole = 0, torn = 0;
    file = tmpfile();
    for (int i = 0; i < count; ++i) fprintf(file, "line %d %*d\n", i, i % 50 == 0 ? 900 : 6, i);
    rewind(file);
#pragma omp parallel reduction(+ : whole, torn)
    {
        char text[1000], *line = NULL;
        size_t room = 0;
        int a, b, is_getline = omp_get_thread_num() / 2 % 2;
#pragma omp barrier
        for (;;) {
            const char* const got = is_getline ? (getline(&line, &room, file) > 0 ? line : NULL)
                                               : fgets(text, sizeof text, file);
            is_getline = !is_getline;
            if (got == NULL) break;
            const int is_whole = sscanf(got, "line %d %d", &a, &b) == 2 && a == b;
            whole += is_whole;
            torn += !is_whole;
        }
        free(line);
    }
    fclose(file);
    printf("%ld whole lines, %ld torn\n", whole, torn);
}

int main(void) {
    begin();
#pragma omp parallel
    if (is_last()) look();
    print_lines();
    fclose(file);
#pragma omp parallel
    {
        if (is_last()) begin();
#pragma omp barrier
        if (is_first()) look();
    }
    print_lines();
    fclose(file);
    share_the_end();
    whole_lines();
    return 0;
}
