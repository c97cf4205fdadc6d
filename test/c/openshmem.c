/* SPDX-License-Identifier: BSD-3-Clause
   Role: the calls of examples/shmem, with answers checked: what PEs put, count and hand on, and a
   heap that is the same on all PEs after thousands of allocations. Usage: c_openshmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shmem.h"

#define INSIST(good)                                                             \
    do {                                                                         \
        if (!(good)) {                                                           \
            fprintf(stderr, "WRONG: PE %d, line %d: %s\n", me, __LINE__, #good); \
            shmem_global_exit(9);                                                \
        }                                                                        \
    } while (0)

static int me, pes;

/* Blocks of all sizes come and go; none overlaps another, and all PEs have the same. */
static void the_heap(void) {
    enum { blocks = 60, steps = 400 };
    unsigned char* at[blocks] = {NULL};
    size_t bytes[blocks] = {0};
    unsigned seed = 7;
    for (int step = 0; step < steps; ++step) {
        seed = seed * 1103515245 + 12345;
        const unsigned i = seed >> 16 & 0x7fff, slot = i % blocks;
        if (at[slot] != NULL) {
            for (size_t k = 0; k < bytes[slot]; ++k)
                INSIST(at[slot][k] == (unsigned char)(slot + 1));
            shmem_free(at[slot]);
            at[slot] = NULL;
        } else {
            bytes[slot] = i % 5000 + 1;
            at[slot] = i % 3 == 0 ? shmem_calloc(bytes[slot], 1)
                                  : shmem_align(i % 2 ? 4096 : 64, bytes[slot]);
            INSIST(at[slot] != NULL &&
                   (i % 3 == 0 || i % 2 == 0 || (uintptr_t)at[slot] % 4096 == 0));
            if (i % 3 == 0) INSIST(at[slot][0] == 0 && at[slot][bytes[slot] - 1] == 0);
            memset(at[slot], (int)slot + 1, bytes[slot]);
        }
    }
    for (int slot = 0; slot < blocks; ++slot) shmem_free(at[slot]);
    /* All of it is one range again. */
    long* word = shmem_malloc(sizeof *word);
    void* rest = shmem_malloc(((size_t)64 << 20) - 64);
    INSIST(rest != NULL && shmem_malloc(64) == NULL && shmem_malloc((size_t)1 << 40) == NULL &&
           shmem_malloc(0) == NULL);
    *word = me;
    shmem_barrier_all();
    INSIST(shmem_long_g(word, (me + 1) % pes) == (me + 1) % pes);
    shmem_free(rest);
    shmem_free(word);
}

static void copies(void) {
    enum { count = 3000 };
    const int next = (me + 1) % pes, before = (me + pes - 1) % pes;
    double *row = shmem_malloc(count * sizeof *row), mine[count], back[count];
    int* number = shmem_calloc(2, sizeof *number);
    for (int i = 0; i < count; ++i) mine[i] = me + i / (double)count;
    shmem_double_put(row, mine, count, next);
    shmem_int_p(number, 100 + me, next);
    shmem_barrier_all();
    for (int i = 0; i < count; ++i) INSIST(row[i] == before + i / (double)count);
    INSIST(number[0] == 100 + before && number[1] == 0 && shmem_int_g(number, next) == 100 + me);
    shmem_double_get_nbi(back, row, count / 2, next);
    shmem_double_get_nbi(back + count / 2, row + count / 2, count - count / 2, next);
    shmem_quiet();
    INSIST(memcmp(back, mine, sizeof mine) == 0);
    shmem_barrier_all();
    for (int i = 0; i < count; ++i) shmem_double_put_nbi(row + i, mine + count - 1 - i, 1, next);
    shmem_barrier_all();
    for (int i = 0; i < count; ++i) INSIST(row[i] == before + (count - 1 - i) / (double)count);
    const double* there = shmem_ptr(row, next);
    if (there != NULL) INSIST(there[0] == mine[count - 1]);
    shmem_free(number);
    shmem_free(row);
}

static void signals(void) {
    enum { turns = 15, count = 500 };
    const int next = (me + 1) % pes, before = (me + pes - 1) % pes;
    uint64_t* signal = shmem_calloc(2, sizeof *signal);
    int *row = shmem_malloc(count * sizeof *row), mine[count];
    for (int turn = 1; turn <= turns; ++turn) {
        for (int i = 0; i < count; ++i) mine[i] = turn * 1000 + me;
        shmem_putmem_signal(row, mine, sizeof mine, signal, turn % 2 ? 1 : (uint64_t)turn,
                            turn % 2 ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, next);
        INSIST(shmem_signal_wait_until(signal, SHMEM_CMP_GE, (uint64_t)turn) == (uint64_t)turn);
        for (int i = 0; i < count; ++i) INSIST(row[i] == turn * 1000 + before);
        /* The row may be written again. */
        shmem_uint64_atomic_set(signal + 1, (uint64_t)turn, before);
        shmem_uint64_wait_until(signal + 1, SHMEM_CMP_EQ, (uint64_t)turn);
    }
    INSIST(shmem_signal_fetch(signal) == turns &&
           shmem_uint64_test(signal, SHMEM_CMP_LT, turns + 1));
    shmem_free(row);
    shmem_free(signal);
}

static void atomics(void) {
    enum { times = 100 };
    struct counts {
        long sum, guarded, lock;
        int narrow, swapped;
        unsigned bits, flips;
    }* all = shmem_calloc(1, sizeof *all);
    for (int i = 0; i < times; ++i) {
        shmem_long_atomic_add(&all->sum, me + 1, 0);
        shmem_int_atomic_inc(&all->narrow, pes - 1);
        if (i % 10 != 0) continue;
        shmem_set_lock(&all->lock);
        shmem_long_p(&all->guarded, shmem_long_g(&all->guarded, 0) + 1, 0);
        shmem_clear_lock(&all->lock);
    }
    (void)shmem_uint_atomic_fetch_or(&all->bits, 1u << me, 0);
    (void)shmem_uint_atomic_fetch_xor(&all->flips, 3, 0);
    const int won = shmem_int_atomic_compare_swap(&all->swapped, 0, me + 1, 0) == 0;
    shmem_barrier_all();
    INSIST(shmem_long_atomic_fetch(&all->sum, 0) == times * (long)pes * (pes + 1) / 2);
    INSIST(shmem_int_atomic_fetch(&all->narrow, pes - 1) == times * pes);
    INSIST(shmem_long_g(&all->guarded, 0) == times / 10 * pes);
    INSIST(shmem_uint_g(&all->bits, 0) == (1u << pes) - 1 &&
           shmem_uint_g(&all->flips, 0) == (pes % 2 ? 3u : 0));
    long* winners = shmem_calloc(2, sizeof *winners);
    winners[0] = won;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, winners + 1, winners, 1);
    INSIST(winners[1] == 1);
    float* value = shmem_calloc(1, sizeof *value);
    if (me == pes - 1)
        INSIST(shmem_float_atomic_swap(value, 2.5f, 0) == 0 &&
               shmem_float_atomic_fetch(value, 0) == 2.5f);
    shmem_free(value);
    shmem_free(winners);
    shmem_free(all);
}

static void together(void) {
    double values[3] = {me, -me, 0.5}, found[3];
    int *all = malloc((size_t)pes * sizeof *all), *out = malloc((size_t)pes * sizeof *out);
    shmem_double_max_reduce(SHMEM_TEAM_WORLD, found, values, 3);
    INSIST(found[0] == pes - 1 && found[1] == 0 && found[2] == 0.5);
    shmem_double_min_reduce(SHMEM_TEAM_WORLD, values, values, 2);
    INSIST(values[0] == 0 && values[1] == -(pes - 1));
    shmem_fcollectmem(SHMEM_TEAM_WORLD, all, &me, sizeof me);
    for (int i = 0; i < pes; ++i) INSIST(all[i] == i);
    for (int i = 0; i < pes; ++i) out[i] = 10 * me + i;
    shmem_alltoallmem(SHMEM_TEAM_WORLD, all, out, sizeof me);
    for (int i = 0; i < pes; ++i) INSIST(all[i] == 10 * i + me);
    shmem_broadcastmem(SHMEM_TEAM_WORLD, all, out, sizeof me, pes - 1);
    INSIST(all[0] == 10 * (pes - 1));
    shmem_int_prod_reduce(SHMEM_TEAM_WORLD, all, out, 0);
    int bit = 1 << me, bits = 0;
    shmem_int_or_reduce(SHMEM_TEAM_WORLD, &bits, &bit, 1);
    INSIST(bits == (1 << pes) - 1);
    shmem_sync_all();
    free(out);
    free(all);
}

/* Every second PE, backwards; rows and columns; and PEs that share memory. */
static void teams(void) {
    shmem_team_t odd, rows, columns;
    const int count = pes / 2;
    INSIST(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes, 1, 1, NULL, 0, &odd) == -1);
    if (count > 0) {
        const int start = 1 + 2 * (count - 1);
        INSIST(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, -2, count, NULL, 0, &odd) == 0);
        INSIST((odd == SHMEM_TEAM_INVALID) == (me % 2 == 0));
        if (odd != SHMEM_TEAM_INVALID) {
            const int mine = shmem_team_my_pe(odd);
            INSIST(shmem_team_n_pes(odd) == count && mine == (start - me) / 2);
            INSIST(shmem_team_translate_pe(odd, mine, SHMEM_TEAM_WORLD) == me);
            INSIST(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, odd) == -1);
            int sum = 0, number = me;
            INSIST(shmem_int_sum_reduce(odd, &sum, &number, 1) == 0 && sum == count * count);
            shmem_team_destroy(odd);
        }
    }
    INSIST(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &rows, NULL, 0, &columns) == 0);
    INSIST(shmem_team_my_pe(rows) == me % 2 && shmem_team_my_pe(columns) == me / 2);
    int all[16], first = me;
    INSIST(shmem_int_fcollect(columns, all, &me, 1) == 0);
    for (int i = 0; i < shmem_team_n_pes(columns); ++i) INSIST(all[i] == 2 * i + me % 2);
    INSIST(shmem_int_broadcast(rows, &first, &me, 1, 0) == 0 && first == me - me % 2);
    shmem_team_sync(rows);
    shmem_team_destroy(rows);
    shmem_team_destroy(columns);
    const int shared = shmem_team_n_pes(SHMEM_TEAM_SHARED);
    INSIST(shared == 1 || shared == pes);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    the_heap();
    copies();
    signals();
    atomics();
    together();
    teams();
    shmem_barrier_all();
    if (me == 0) printf("OpenSHMEM on %d PEs: right\n", pes);
    fflush(stdout);
    shmem_finalize();
    shmem_finalize();
    return 0;
}
