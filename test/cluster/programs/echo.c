// SPDX-License-Identifier: BSD-3-Clause
// Standard input reaches main, by lines and in large blocks, also after regions have touched the
// buffers on other nodes.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    char* line = NULL;
    size_t room = 0;
    for (int i = 0; i < 3 && getline(&line, &room, stdin) > 0; ++i) printf("line %d: %s", i, line);
    char short_line[64];
    if (fgets(short_line, sizeof short_line, stdin)) printf("short: %s", short_line);

    const size_t bytes = 1 << 20;
    unsigned char* buffer = malloc(bytes);
    size_t total = 0;
    unsigned long sum = 0;
    for (;;) {
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < bytes; ++i) buffer[i] = (unsigned char)i;
        const size_t got = fread(buffer, 1, bytes, stdin);
        if (got == 0) break;
        unsigned long part = 0;
#pragma omp parallel for schedule(static) reduction(+ : part)
        for (size_t i = 0; i < got; ++i) part += buffer[i] * (unsigned long)(i % 251 + 1);
        sum += part;
        total += got;
    }
    printf("%zu bytes, sum %lu\n", total, sum);
    free(line);
    free(buffer);
    return 0;
}
