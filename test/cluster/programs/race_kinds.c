// SPDX-License-Identifier: BSD-3-Clause
// Role: one race or ordered hand-over of two nodes, chosen by the first argument. Every ordered one
// prints "right", whatever the number of nodes.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int total;
double sum;
// Not on the stack of thread 0, which the other nodes would read.
static int late_thread;

static void write_late(int late) {
    late_thread = late;
#pragma omp parallel
    {
        if (omp_get_thread_num() == late_thread) usleep(50000);
        total = 111 + omp_get_thread_num();
    }
}

static void add_up(void) {
#pragma omp parallel for
    for (int i = 0; i < 500; ++i) total += i;
}

// No barrier before the reduction; 1000 where every node has seen the store first.
static int single_nowait(void) {
    int bad = 0;
#pragma omp parallel
    for (int round = 0; round < 50; ++round) {
#pragma omp single nowait
        sum = 0;
#pragma omp for reduction(+ : sum)
        for (int i = 0; i < 1000; ++i) sum += 1;
#pragma omp single
        bad += sum != 1000;
    }
    return bad;
}

static void locks(void) {
    long other = 0, shared = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel
    for (int i = 0; i < 50; ++i) {
#pragma omp critical
        total += 1;
        omp_set_lock(&lock);
        other += 2;
        omp_unset_lock(&lock);
#pragma omp atomic
        shared += 1;
    }
    puts(total == other / 2 && total == shared ? "right" : "wrong");
}

// Both ends write the data; the order is that of the flag, by flushes.
static void flag(void) {
    static int ready;
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        total = 5;
#pragma omp flush
#pragma omp atomic write
        ready = 1;
#pragma omp flush
    } else {
        for (int seen = 0; !seen;) {
#pragma omp flush
#pragma omp atomic read
            seen = ready;
        }
#pragma omp flush
        total += 2;
    }
    puts(total == 7 ? "right" : "wrong");
}

int main(int argc, char** argv) {
    const char* const kind = argc > 1 ? argv[1] : "";
    if (strcmp(kind, "write") == 0)
        write_late(-1);
    else if (strcmp(kind, "write_0_late") == 0)
        write_late(0);
    else if (strcmp(kind, "write_1_late") == 0)
        write_late(1);
    else if (strcmp(kind, "add_up") == 0)
        add_up();
    else if (strcmp(kind, "single_nowait") == 0)
        puts(single_nowait() ? "wrong" : "right");
    else if (strcmp(kind, "locks") == 0)
        locks();
    else if (strcmp(kind, "flag") == 0)
        flag();
    else
        return 64;
    return 0;
}
