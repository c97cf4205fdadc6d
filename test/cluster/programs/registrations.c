// SPDX-License-Identifier: BSD-3-Clause
// What main registers with libc between regions, conversions of printf() and domains of gettext(),
// every thread of the next region has. A word: the last thread alone does so.
#define _GNU_SOURCE
#include <libintl.h>
#include <omp.h>
#include <printf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // register_printf_function

static int print_word(FILE* stream, const struct printf_info* info, const void* const* arguments) {
    (void)info;
    return fprintf(stream, "<%d>", *(const int*)arguments[0]);
}

static int arguments_of_word(const struct printf_info* info, size_t count, int* types, int* sizes) {
    (void)info;
    if (count > 0) types[0] = PA_INT;
    if (count > 0) sizes[0] = sizeof(int);
    return 1;
}

static void look(const char* title) {
    enum { threads_max = 64, text_bytes = 200 };
    static char seen[threads_max][text_bytes];
    int threads = 0, equal = 0;
#pragma omp parallel
    {
        const int me = omp_get_thread_num();
        const char* const folder = bindtextdomain("of_program", NULL);
        const char* const codeset = bind_textdomain_codeset("of_program", NULL);
        const char format[] = {'%', 'W', 0}, old[] = {'%', 'Y', 0};
        char first[20], second[20];
        snprintf(first, sizeof first, format, 5);
        snprintf(second, sizeof second, old, 6);
        snprintf(seen[me], text_bytes, "%s %s %s %s %s", first, second, textdomain(NULL),
                 folder ? folder : "none", codeset ? codeset : "none");
#pragma omp single
        threads = omp_get_num_threads();
    }
    for (int i = 0; i < threads; ++i) equal += strcmp(seen[i], seen[0]) == 0;
    printf("%s: %d of %d threads agree: %s\n", title, equal, threads, seen[threads - 1]);
}

static void do_alone(const char* word) {
    if (strcmp(word, "domain") == 0) textdomain("of_thread");
    if (strcmp(word, "conversion") == 0)
        register_printf_specifier('W', print_word, arguments_of_word);
    if (strcmp(word, "zone") == 0) {
        setenv("TZ", "EST5EDT,M3.2.0,M11.1.0", 1);
        tzset();
    }
}

int main(int argc, char** argv) {
    if (argc > 1) {
#pragma omp parallel
        {
            struct tm broken_down = {0};
            mktime(&broken_down);  // which reads the zone, and changes nothing
            if (omp_get_thread_num() == omp_get_num_threads() - 1) do_alone(argv[1]);
        }
        return 0;
    }
    look("at first");
    register_printf_specifier('W', print_word, arguments_of_word);
    textdomain("of_program");
    bindtextdomain("of_program", "/usr/share/of_program");
    look("registered");
    register_printf_function('Y', print_word, (printf_arginfo_function*)arguments_of_word);
    bind_textdomain_codeset("of_program", "UTF-8");
    textdomain("other");
    look("more");
    return 0;
}
