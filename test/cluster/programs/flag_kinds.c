// SPDX-License-Identifier: BSD-3-Clause
// Role: one hand-over by a flag, chosen by the first argument; every thread of the team takes part.
// Each is ordered by the language and prints "right", whatever the number of nodes.
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { rounds = 2, regions = 4, threads_max = 64, columns = 10 };

// Flags and data lie in blocks of their own, some far apart, some close.
static struct {
    _Atomic int ready;
    char a[65536];
    int turn;
    char b[65536];
    int data;
    char c[65536];
    int near_turn;
    int pad[4096];
    int near_data;
    char d[4096];
    char flag[threads_max][64];
    char e[4096];
    char column_flag[columns + 2];
    char f[4096];
    int value[64][columns + 2];
} shared;

static int take_data(int* data, int step) {
    const int old = *data != step;
    *data = step + 1;
    return old;
}

// data = ...; ready = true;  while (!ready); use data
static int store(void) {
    int wrong = 0;
    for (int r = 1; r <= regions; ++r) {
#pragma omp parallel reduction(+ : wrong)
        if (omp_get_thread_num() == 0) {
            shared.data = r;
            shared.ready = r;
        } else {
            while (shared.ready != r) {
            }
            wrong += shared.data != r;
        }
    }
    return wrong;
}

// Hand-overs of the turn to `step` and on, one thread after the other: each waits for its step,
// takes the data and passes the turn on. Returns whether the data were old.
static int by_seq_cst(int step, int* turn, int* data) {
    for (int seen = -1; seen != step;) {
#pragma omp atomic read seq_cst
        seen = *turn;
    }
    const int old = take_data(data, step);
#pragma omp atomic write seq_cst
    *turn = step + 1;
    return old;
}

static int turn_seq_cst(int step) { return by_seq_cst(step, &shared.turn, &shared.data); }
static int near_seq_cst(int step) { return by_seq_cst(step, &shared.near_turn, &shared.near_data); }

static int turn_release(int step) {
    for (int seen = -1; seen != step;) {
#pragma omp atomic read acquire
        seen = shared.turn;
    }
    const int old = take_data(&shared.data, step);
#pragma omp atomic write release
    shared.turn = step + 1;
    return old;
}

static int turn_flush(int step) {
    for (int seen = -1; seen != step;) {
#pragma omp flush
#pragma omp atomic read
        seen = shared.turn;
    }
#pragma omp flush
    const int old = take_data(&shared.data, step);
#pragma omp flush
#pragma omp atomic write
    shared.turn = step + 1;
#pragma omp flush
    return old;
}

// No atomic at all: a volatile word between flushes.
static int near_flush(int step) {
    for (int seen = -1; seen != step;) {
#pragma omp flush
        seen = *(volatile int*)&shared.near_turn;
    }
#pragma omp flush
    const int old = take_data(&shared.near_data, step);
#pragma omp flush
    *(volatile int*)&shared.near_turn = step + 1;
#pragma omp flush
    return old;
}

static int fetch_and_add(int step) {
    while (atomic_fetch_add(&shared.ready, 0) != step) {
    }
    const int old = take_data(&shared.data, step);
    atomic_fetch_add(&shared.ready, 1);
    return old;
}

static int in_turn(int (*hand_over)(int step)) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    for (int r = 0; r < rounds; ++r)
        wrong += hand_over(r * omp_get_num_threads() + omp_get_thread_num());
    return wrong;
}

// The standard's example of a flush; a spin without one.
static int example(int writer, int* x, int* y) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    if (omp_get_thread_num() == (writer < 0 ? omp_get_num_threads() - 1 : writer)) {
        *x = 10;
#pragma omp flush
#pragma omp atomic write
        *y = 1;
    } else {
        for (int seen = 0; !seen;) {
#pragma omp atomic read
            seen = *y;
        }
#pragma omp flush
        wrong += *x != 10;
    }
    return wrong;
}

static int example_first(void) {
    int x = 0, y = 0;
    return example(0, &x, &y);
}
static int example_last(void) {
    int x = 0, y = 0;
    return example(-1, &x, &y);
}
static int example_global(void) { return example(-1, &shared.data, &shared.turn); }

// The first thread writes its flag and goes to a barrier; the others wait with a flush.
static int flag_then_barrier(void) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    {
        const int self = omp_get_thread_num();
        volatile char* const flag = &shared.flag[0][0];
        if (self != 0)
            while (*flag == 0) {
#pragma omp flush
            }
        shared.value[self][0] = self + 1;
        if (self == 0) *flag = 1;
#pragma omp barrier
        for (int i = 0; i < omp_get_num_threads(); ++i) wrong += shared.value[i][0] != i + 1;
    }
    return wrong;
}

// A wavefront: flags by plain stores, a flush only where a thread waits. The compiler is kept from
// moving the stores, which it may; the processor does not.
#define KEEP_ORDER() __asm__ volatile("" ::: "memory")
static int pipeline(void) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    for (int sweep = 0; sweep < regions; ++sweep) {
        volatile char* const flag = shared.column_flag;
        for (int k = 0; k < 10; ++k) {
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
                shared.value[k][j] = shared.value[k][j - 1] + 1;
                KEEP_ORDER();
                if (j != columns - 1) flag[j] = 1;
                if (j != 1) flag[j - 1] = 0;
            }
        }
#pragma omp barrier
        for (int k = 0; k < 10; ++k) wrong += shared.value[k][columns - 1] != columns - 1;
#pragma omp barrier
#pragma omp single
        memset(shared.value, 0, sizeof shared.value);
    }
    return wrong;
}

// Threads of two halves, which lie on different nodes, have a flag for each pair.
static int pairs(void) {
    int given = 0;
#pragma omp parallel reduction(+ : given)
    {
        const int half = omp_get_num_threads() / 2, self = omp_get_thread_num();
        volatile char* const flag = &shared.flag[self % half][0];
        for (int i = 0; i < regions && self < 2 * half; ++i) {
            const char wanted = self < half ? 0 : 1;
            while (*flag != wanted) {
#pragma omp flush
            }
            *flag = !wanted;
#pragma omp flush
            ++given;
        }
    }
    return given != omp_get_max_threads() / 2 * 2 * regions;
}

// A plain store that nothing follows, and plain loads: the writer's program only ends its region.
static int plain(void) {
#pragma omp parallel
    if (omp_get_thread_num() == 0) {
        *(volatile int*)&shared.turn = 1;
    } else {
        while (*(volatile int*)&shared.turn == 0) {
        }
    }
    return 0;
}

// Each thread waits for the flag of the one before it, and reads what all have written.
static int through_others(void) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    {
        const int self = omp_get_thread_num();
        shared.value[self][1] = self + 1;
        if (self > 0)
            while (__atomic_load_n(&shared.flag[self - 1][0], __ATOMIC_ACQUIRE) == 0) {
            }
        for (int i = 0; i < self; ++i) wrong += shared.value[i][1] != i + 1;
        __atomic_store_n(&shared.flag[self][0], 1, __ATOMIC_RELEASE);
    }
    return wrong;
}

// As the counts of shared pointers: the thread that comes last reads what the others wrote.
static int last_reads(void) {
    int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    for (int r = 0; r < regions; ++r) {
        const int threads = omp_get_num_threads();
        shared.value[omp_get_thread_num()][2] = r + 1;
        if (atomic_fetch_add(&shared.ready, 1) == threads - 1) {
            for (int i = 0; i < threads; ++i) wrong += shared.value[i][2] != r + 1;
            shared.ready = 0;
        }
#pragma omp barrier
    }
    return wrong;
}

static int ordered(void) {
    int wrong = 0;
#pragma omp parallel for ordered schedule(static, 1)
    for (int j = 0; j < 100; ++j) {
#pragma omp ordered
        if (shared.data++ != j) wrong = 1;
    }
    return wrong;
}

static const struct {
    const char* name;
    int (*run)(void);
    int (*hand_over)(int step);  // where there is no `run`: see in_turn()
} kinds[] = {
    {"store", .run = store},
    {"turn_seq_cst", .hand_over = turn_seq_cst},
    {"turn_release", .hand_over = turn_release},
    {"turn_flush", .hand_over = turn_flush},
    {"near_seq_cst", .hand_over = near_seq_cst},
    {"near_flush", .hand_over = near_flush},
    {"fetch_and_add", .hand_over = fetch_and_add},
    {"example_first", .run = example_first},
    {"example_last", .run = example_last},
    {"example_global", .run = example_global},
    {"flag_then_barrier", .run = flag_then_barrier},
    {"pipeline", .run = pipeline},
    {"pairs", .run = pairs},
    {"plain", .run = plain},
    {"through_others", .run = through_others},
    {"last_reads", .run = last_reads},
    {"ordered", .run = ordered},
};

int main(int argc, char** argv) {
    for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; ++i) {
        if (strcmp(argv[1], kinds[i].name) != 0) continue;
        const int wrong = kinds[i].run ? kinds[i].run() : in_turn(kinds[i].hand_over);
        puts(wrong ? "wrong" : "right");
        return wrong != 0;
    }
    for (size_t i = 0; argc == 1 && i < sizeof kinds / sizeof *kinds; ++i) puts(kinds[i].name);
    return argc == 1 ? 0 : 64;
}
