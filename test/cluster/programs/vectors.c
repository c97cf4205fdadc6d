// SPDX-License-Identifier: BSD-3-Clause
// readv, writev and theirs with an offset on descriptors that another node has opened: lines of a
// log stay whole among those of others, and a reader takes what there is and waits for no more.
#define _GNU_SOURCE
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { lines = 400, line_bytes = 16, big_bytes = 300000 };

static int temporary(int flags) {
    char name[] = "/tmp/vectors_XXXXXX";
    const int made = mkostemp(name, flags);
    unlink(name);
    return made;
}

static void whole_lines(void) {
    const int log = temporary(O_APPEND);
    int whole = 0;
    long sum = 0;
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < lines; ++i) {
        char number[12], rest[] = " entry\n";
        snprintf(number, sizeof number, "%07d", i);
        const struct iovec parts[] = {
            {number, 4}, {number + 4, 3}, {NULL, 0}, {rest, 7}, {"\n\n", 2}};
        if (writev(log, parts, 5) != line_bytes) perror("writev");
    }
#pragma omp parallel for schedule(static, 1) reduction(+ : whole, sum)
    for (int i = 0; i < lines; ++i) {
        char start[5] = "", middle[4] = "", end[10] = "";
        const struct iovec parts[] = {{start, 4}, {middle, 3}, {end, 9}};
        if (preadv(log, parts, 3, (off_t)i * line_bytes) != line_bytes) perror("preadv");
        whole += strcmp(end, " entry\n\n\n") == 0;
        sum += atoi(start) * 1000 + atoi(middle);
    }
    printf("lines %d whole, sum %ld\n", whole, sum);
    close(log);
}

static void no_more_than_there_is(void) {
    int ends[2], words[2];
    long sum = 0;
    if (pipe(ends) != 0 || pipe(words) != 0) exit(2);
#pragma omp parallel for schedule(static, 1) ordered
    for (int i = 0; i < 12; ++i) {
#pragma omp ordered
        {
            char first[3], second[5];
            const struct iovec parts[] = {{first, 3}, {second, 5}};
            if (write(ends[1], "abc", 3) != 3) perror("write");
            sum = sum * 3 + readv(ends[0], parts, 2);
            if (write(ends[1], "abcdefghij", 10) != 10) perror("write");
            sum = sum * 3 + readv(ends[0], parts, 2) + second[4];
            sum = (sum * 3 + readv(ends[0], parts, 2) + first[1]) % 1000003;
        }
    }
    printf("pipe %ld\n", sum);
}

static void more_than_a_message(void) {
    const int file = temporary(0);
    char *const out = malloc(big_bytes), *const in = calloc(1, big_bytes);
    int wrong = 0;
    for (int i = 0; i < big_bytes; ++i) out[i] = (char)(i * 7 >> 3);
#pragma omp parallel num_threads(2) reduction(+ : wrong)
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
        struct iovec parts[3] = {{out, 100001}, {out + 100001, 99}, {out + 100100, 199900}};
        wrong += pwritev(file, parts, 3, 5) != big_bytes;
        for (int i = 0; i < 3; ++i) parts[i].iov_base = in + (parts[i].iov_base - (void*)out);
        wrong += preadv(file, parts, 3, 5) != big_bytes;
        wrong += preadv(file, parts, 3, big_bytes - 5) != 10;
    }
    printf("big %d %d\n", wrong, memcmp(in + 10, out + 10, big_bytes - 10) == 0);
    free(out);
    free(in);
}

int main(void) {
    whole_lines();
    no_more_than_there_is();
    more_than_a_message();
    return 0;
}
