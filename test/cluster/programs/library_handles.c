// SPDX-License-Identifier: BSD-3-Clause
// Handles of libraries that are loaded from the start: one that a thread has got is good for those
// of all nodes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

enum { threads_max = 64 };
static void *by_main, *program, *by_thread[threads_max];

/// @return 1 if the handle is that of libm
static int is_good(void* handle) {
    double (*const root)(double) = (double (*)(double))dlsym(handle, "sqrt");
    struct link_map* map = NULL;
    return root != NULL && root(9) == 3 && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 &&
           strstr(map->l_name, "libm") != NULL && dlsym(handle, "no_such_function") == NULL;
}

int main(void) {
    const int threads = team_size();
    volatile double linked = 9;
    by_main = dlopen("libm.so.6", RTLD_NOW);
    program = dlopen(NULL, RTLD_NOW);
    long of_main = 0, of_program = 0, of_others = 0, closed = 0;
#pragma omp parallel reduction(+ : of_main, of_program, of_others, closed)
    {
        const int me = omp_get_thread_num();
        of_main += is_good(by_main);
        of_program += dlsym(program, "malloc") == dlsym(RTLD_DEFAULT, "malloc");
        by_thread[me] = dlopen("libm.so.6", RTLD_NOW);
#pragma omp barrier
        for (int i = 0; i < threads; ++i) of_others += is_good(by_thread[i]);
        of_others += by_thread[me] == by_main;
#pragma omp barrier
        closed += dlclose(by_thread[(me + 1) % threads]) == 0;
    }
    check_equal("main's handle", of_main, threads);
    check_equal("that of the program", of_program, threads);
    check_equal("those of all threads", of_others, threads * (threads + 1));
    check_equal("they are closed", closed, threads);
    check("the library is there", sqrt(linked) == 3);
    return wrong;
}
