// SPDX-License-Identifier: BSD-3-Clause
// Threads hand data on by flags of their own making, each in a way of its own; a thread that has
// seen the flag reads the data. Every thread in turn writes, the next one reads and goes on.
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>

enum { rounds = 6, far = 16384, columns = 10 };

static struct {
    _Atomic int atomic_turn;
    char a[far];
    int turn;
    char b[far];
    volatile int plain_turn;
    char c[far];
    int data;
    char d[far];
    long table[1024];
} shared;

static void check_and_change(int step, int* wrong) {
    *wrong += shared.data != step;
    for (int i = 0; i < 1024; i += 97) *wrong += shared.table[i] != step;
    shared.data = step + 1;
    for (int i = 0; i < 1024; i += 97) shared.table[i] = step + 1;
}

// The language's default: a store and a load in one order with all others.
static void by_atomic(int step, int* wrong) {
    while (shared.atomic_turn != step) {
    }
    check_and_change(step, wrong);
    shared.atomic_turn = step + 1;
}

static void by_read_modify_write(int step, int* wrong) {
    while (atomic_fetch_add(&shared.atomic_turn, 0) != step) {
    }
    check_and_change(step, wrong);
    atomic_fetch_add(&shared.atomic_turn, 1);
}

static void by_omp_atomic(int step, int* wrong) {
    for (int seen = -1; seen != step;) {
#pragma omp atomic read seq_cst
        seen = shared.turn;
    }
    check_and_change(step, wrong);
#pragma omp atomic write seq_cst
    shared.turn = step + 1;
}

// The standard's own example of a flush.
static void by_flush(int step, int* wrong) {
    for (int seen = -1; seen != step;) {
#pragma omp atomic read
        seen = shared.turn;
    }
#pragma omp flush
    check_and_change(step, wrong);
#pragma omp flush
#pragma omp atomic write
    shared.turn = step + 1;
}

static void by_plain_moves(int step, int* wrong) {
    while (shared.plain_turn != step) {
    }
    check_and_change(step, wrong);
    shared.plain_turn = step + 1;
}

static int hand_round(const char* how, void (*hand)(int step, int* wrong)) {
    int wrong = 0;
    shared.atomic_turn = shared.turn = shared.plain_turn = shared.data = 0;
    for (int i = 0; i < 1024; i += 97) shared.table[i] = 0;
#pragma omp parallel reduction(+ : wrong)
    for (int round = 0; round < rounds; ++round) {
        hand(round * omp_get_num_threads() + omp_get_thread_num(), &wrong);
    }
    printf("%s: %d wrong\n", how, wrong);
    return wrong;
}

// A pipeline as solvers have it: flags by plain stores, a flush only where a thread waits. The
// compiler is kept from moving the stores, which it may; the processor does not.
#define KEEP_ORDER() __asm__ volatile("" ::: "memory")
static char flag[columns + 2];
static int value[32][columns + 2];

static int pipeline(void) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    for (int sweep = 0; sweep < rounds; ++sweep) {
        for (int k = 0; k < 8; ++k) {
#pragma omp for nowait schedule(static)
            for (int j = 1; j < columns; ++j) {
                if (j != 1)
                    while (flag[j - 1] == 0) {
#pragma omp flush
                    }
                if (j != columns - 1)
                    while (flag[j] == 1) {
#pragma omp flush
                    }
                KEEP_ORDER();
                value[k][j] = value[k][j - 1] + 1;
                KEEP_ORDER();
                if (j != columns - 1) flag[j] = 1;
                if (j != 1) flag[j - 1] = 0;
            }
        }
#pragma omp barrier
        for (int k = 0; k < 8; ++k) wrong += value[k][columns - 1] != columns - 1;
#pragma omp barrier
#pragma omp single
        for (int k = 0; k < 8; ++k)
            for (int j = 1; j < columns; ++j) value[k][j] = 0;
    }
    printf("pipeline: %d wrong\n", wrong);
    return wrong;
}

int main(void) {
    int wrong = hand_round("atomic", by_atomic);
    wrong += hand_round("read-modify-write", by_read_modify_write);
    wrong += hand_round("omp atomic", by_omp_atomic);
    wrong += hand_round("flush", by_flush);
    wrong += hand_round("plain moves", by_plain_moves);
    return wrong + pipeline() > 0;
}
