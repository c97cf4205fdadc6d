// SPDX-License-Identifier: BSD-3-Clause
// Role: a program the launcher must refuse: it carries an OpenMP runtime's entry point itself.
#include <stdio.h>

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
    (void)threads;
    (void)flags;
    body(data);
}

static void body(void* data) { puts(data); }

int main(void) {
    GOMP_parallel(body, "ran", 0, 0);
    return 0;
}
