// SPDX-License-Identifier: BSD-3-Clause
// Role: a pipeline whose stages wait for one another by loads alone, in the forms that compilers
// make of them; what came before a flag must be there behind it.
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>

enum { rows = 64, columns = 1024, stages = 8, apart = 16, all_flags = rows * stages * apart };
static double field[rows][columns];
static int flags[all_flags];
static volatile int plain_flags[all_flags];
static _Atomic int atomic_flags[all_flags];

static void wait_by_atomic_read(int stage) {
    int seen = 0;
    while (1) {
#pragma omp atomic read seq_cst
        seen = flags[stage * apart];
        if (seen == 1) break;
    }
}

static void tell_by_atomic_write(int stage) {
#pragma omp atomic write seq_cst
    flags[stage * apart] = 1;
}

static void wait_by_volatile(int stage) {
    while (plain_flags[stage * apart] == 0) {
    }
}

static void tell_by_volatile(int stage) { plain_flags[stage * apart] = 1; }

static void wait_by_acquire(int stage) {
    while (atomic_load_explicit(&atomic_flags[stage * apart], memory_order_acquire) != 1)
        __builtin_ia32_pause();
}

static void tell_by_release(int stage) {
    atomic_store_explicit(&atomic_flags[stage * apart], 1, memory_order_release);
}

static const struct {
    const char* name;
    void (*wait)(int);
    void (*tell)(int);
} ways[] = {{"atomic read", wait_by_atomic_read, tell_by_atomic_write},
            {"volatile", wait_by_volatile, tell_by_volatile},
            {"acquire", wait_by_acquire, tell_by_release}};

int main(void) {
    const int most = omp_get_max_threads(), teams = most < stages ? most : stages;
    for (int way = 0; way < 3; ++way) {
        for (int row = 0; row < rows; ++row)
            for (int column = 0; column < columns; ++column) field[row][column] = row == 0;
#pragma omp parallel num_threads(teams)
        {
            const int threads = omp_get_num_threads(), me = omp_get_thread_num();
            const int begin = columns * me / threads, end = columns * (me + 1) / threads;
            for (int row = 1; row < rows; ++row) {
                if (me > 0) ways[way].wait(row * stages + me - 1);
                for (int column = begin; column < end; ++column)
                    field[row][column] =
                        field[row - 1][column] + (column > 0 ? field[row][column - 1] / 2 : 0);
                if (me + 1 < threads) ways[way].tell(row * stages + me);
            }
        }
        double sum = 0;
        for (int row = 0; row < rows; ++row)
            for (int column = 0; column < columns; ++column) sum += field[row][column];
        printf("%s: %.12g\n", ways[way].name, sum);
    }
    return 0;
}
