// SPDX-License-Identifier: BSD-3-Clause
// Variables of the environment that threads of a region set, change and remove: the others, main
// and children find them.
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { each = 40 };

static int found_of(int thread) {
    int found = 0;
    for (int i = 0; i < each; ++i) {
        char name[40], value[40];
        snprintf(name, sizeof name, "OF_%d_%d", thread, i);
        snprintf(value, sizeof value, "%d", thread + i);
        const char* const text = getenv(name);
        found += text != NULL && strcmp(text, value) == 0;
    }
    return found;
}

static void set_own(int thread) {
    for (int i = 0; i < each; ++i) {
        char name[40], value[40];
        snprintf(name, sizeof name, "OF_%d_%d", thread, i);
        snprintf(value, sizeof value, "%d", thread + i);
        setenv(name, value, i % 2);
    }
}

static void show_child(const char* from) {
    char line[100] = "";
    FILE* const child = popen("echo ${LAST-none} ${PUT-none} ${GONE-none}", "r");
    if (fgets(line, sizeof line, child) == NULL) strcpy(line, "nothing\n");
    pclose(child);
    printf("child of %s: %s", from, line);
}

static const char* or_none(const char* text) { return text != NULL ? text : "none"; }

int main(void) {
    static char put[] = "PUT=by putenv";
    setenv("GONE", "still there", 1);
    setenv("KEPT", "by main", 1);
    int found = 0, gone = 0, kept = 0, last = 0, removed = 0;
#pragma omp parallel reduction(+ : found, gone, kept, last, removed)
    {
        const int self = omp_get_thread_num(), count = omp_get_num_threads();
        set_own(self);
#pragma omp barrier
        for (int thread = 0; thread < count; ++thread) found += found_of(thread) == each;
#pragma omp barrier
        if (self == count - 1) {
            set_own(count), set_own(count + 1), set_own(count + 2);  // the array has to grow
            setenv("LAST", "by the last", 1);
            setenv("KEPT", "not this", 0);
            unsetenv("GONE");
            putenv(put);
        }
#pragma omp barrier
        last += strcmp(or_none(getenv("LAST")), "by the last") == 0;
        kept += strcmp(or_none(secure_getenv("KEPT")), "by main") == 0;
        gone += getenv("GONE") == NULL;
#pragma omp barrier
        if (self == 0) show_child("the first");
#pragma omp barrier
        if (self == count - 1) show_child("the last");
#pragma omp barrier
        if (self == 0) unsetenv("LAST");
#pragma omp barrier
        removed += getenv("LAST") == NULL;
    }
    printf("%d %d %d %d %d\n", found, last, kept, gone, removed);
    printf("main: %s, %s, %s, %d\n", or_none(getenv("LAST")), or_none(getenv("PUT")),
           or_none(getenv("GONE")), found_of(0));
    show_child("main");
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) clearenv();
    printf("cleared: %s\n", or_none(getenv("KEPT")));

#ifdef STORES  // then `environ` is a variable of the program, and else libc's
    static char* own[] = {"OWN=stored", NULL};
    environ = own;
    int stored = 0;
#pragma omp parallel reduction(+ : stored)
    {
        stored += strcmp(or_none(getenv("OWN")), "stored") == 0;
#pragma omp barrier
#pragma omp critical
        {
            char name[20];
            snprintf(name, sizeof name, "NEXT%d", omp_get_thread_num());
            setenv(name, "set", 1);
        }
#pragma omp barrier
        for (int i = 0; i < omp_get_num_threads(); ++i) {
            char name[20];
            snprintf(name, sizeof name, "NEXT%d", i);
            stored += 10 * (getenv(name) != NULL);
        }
    }
    printf("stored: %d, %s\n", stored, or_none(getenv("OWN")));
#endif
    return 0;
}
