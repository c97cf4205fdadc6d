// SPDX-License-Identifier: BSD-3-Clause
// What functions of libc return in memory that they made or own, read by every thread: texts and
// times that the next call overwrites, lists of paths.
#define _GNU_SOURCE
#include <glob.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64

static char seen[THREADS_MAX][200];

// What each thread reads at `text`.
static void show(const char* what, const char* text) {
    memset(seen, 0, sizeof seen);
#pragma omp parallel
    snprintf(seen[omp_get_thread_num()], sizeof seen[0], "%s", text);
    for (int i = 0; i < omp_get_max_threads(); ++i) printf("%s %d: %s\n", what, i, seen[i]);
}

static void show_time(const char* what, const struct tm* at) {
    memset(seen, 0, sizeof seen);
#pragma omp parallel
    strftime(seen[omp_get_thread_num()], sizeof seen[0], "%F %T %Z", at);
    for (int i = 0; i < omp_get_max_threads(); ++i) printf("%s %d: %s\n", what, i, seen[i]);
}

// The last thread's calls, read by main: other nodes have buffers of their own.
static void made_in_a_region(void) {
    const time_t later = 1720000000;
    const char* text = NULL;
    const struct tm* at = NULL;
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
        at = localtime(&later);
        text = asctime(at);
    }
    printf("from a region: %.24s, %d\n", text, at->tm_year);
}

static void paths(void) {
    char name[64], pattern[64];
    glob_t found = {.gl_offs = 2};
    for (int i = 0; i < 9; ++i) {
        snprintf(name, sizeof name, "%s_%d", i < 5 ? "first" : "second", i);
        fclose(fopen(name, "w"));
    }
    snprintf(pattern, sizeof pattern, "%s", "first_*");
    int outcome = glob(pattern, GLOB_DOOFFS, NULL, &found);
    outcome |= glob("second_*", GLOB_DOOFFS | GLOB_APPEND, NULL, &found);
    int bytes = 0, empty = 0;
#pragma omp parallel for reduction(+ : bytes, empty)
    for (size_t i = 0; i < found.gl_pathc + 3; ++i) {
        const char* const path = found.gl_pathv[i];
        if (path != NULL) bytes += (int)strlen(path) + path[strlen(path) - 1];
        empty += path == NULL;
    }
    printf("paths: %d, %zu, %d bytes, %d empty, last %s\n", outcome, found.gl_pathc, bytes, empty,
           found.gl_pathv[found.gl_offs + found.gl_pathc - 1]);
    for (size_t i = 0; i < found.gl_pathc; ++i) unlink(found.gl_pathv[i + found.gl_offs]);
    globfree(&found);
    printf("none: %d\n", glob("none_*", 0, NULL, &found) == GLOB_NOMATCH);
}

int main(void) {
    const time_t winter = 1700000000, summer = 1720000000;
    int point, sign;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    show("ctime", ctime(&winter));
    show("asctime", asctime(gmtime(&winter)));
    const struct tm before = *localtime(&winter);
    struct tm mine;
    show_time("localtime", localtime(&summer));
    show_time("copied", &before);
    show_time("localtime_r", localtime_r(&summer, &mine));
    show_time("gmtime", gmtime(&summer));
    printf("one buffer: %d\n", gmtime(&winter) == localtime(&summer));
    show("ecvt", ecvt(3.14159, 4, &point, &sign));
    show("fcvt", fcvt(2.71828, 3, &point, &sign));
    show("l64a", l64a(123456789));
    const char* const name = tmpnam(NULL);
    show("tmpnam", strncmp(name, "/tmp/", 5) == 0 ? "a name" : name);
    made_in_a_region();
    paths();
    return 0;
}
