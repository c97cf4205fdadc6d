/* SPDX-License-Identifier: BSD-3-Clause
   Role: every call of the C faces of the relocatable space and of the shared memory, both open in
   one process, with answers checked. Usage: c_gas_dsm */
#include "check.h"

enum { pages = 6 };

static uint32_t rank, ranks;

static void gas_copies(hiroba_gas* gas, hiroba_place place, uint64_t page) {
    const uint64_t all = pages * page;
    if (rank == 0) {
        unsigned char* bytes = malloc(all);
        for (uint64_t i = 0; i < all; ++i) bytes[i] = (unsigned char)(i * 31);
        INSIST(hiroba_gas_put(gas, place, bytes, all) == HIROBA_OK);
        free(bytes);
    }
    hiroba_gas_barrier(gas);
    unsigned char found[64];
    INSIST(hiroba_gas_get(gas, place + page - 32, found, 64) == HIROBA_OK);
    for (int i = 0; i < 64; ++i)
        INSIST(found[i] == (unsigned char)((page - 32 + (uint64_t)i) * 31));
    INSIST(hiroba_gas_get_strided(gas, place, (int64_t)page, 8, pages, found) == HIROBA_OK);
    for (uint64_t i = 0; i < 8 * pages; ++i)
        INSIST(found[i] == (unsigned char)((i / 8 * page + i % 8) * 31));
    const hiroba_place places[2] = {place + 5 * page, place + 3};
    INSIST(hiroba_gas_get_list(gas, places, 4, 2, found) == HIROBA_OK);
    INSIST(found[0] == (unsigned char)(5 * page * 31) && found[4] == 3 * 31);
    hiroba_gas_pending* pending = hiroba_gas_pending_create();
    INSIST(hiroba_gas_start_get(gas, place + page, found, 16, pending) == HIROBA_OK);
    INSIST(hiroba_gas_start_get(gas, place + 16, found + 16, 16, pending) == HIROBA_OK);
    INSIST(hiroba_gas_wait(gas, pending) == HIROBA_OK);
    INSIST(found[1] == (unsigned char)((page + 1) * 31) && found[17] == (unsigned char)(17 * 31));
    hiroba_gas_barrier(gas);
    if (rank == ranks - 1) {
        const unsigned char new_bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        INSIST(hiroba_gas_put_strided(gas, place, (int64_t)page, 4, 2, new_bytes) == HIROBA_OK);
        INSIST(hiroba_gas_put_list(gas, places, 2, 2, new_bytes) == HIROBA_OK);
        INSIST(hiroba_gas_start_put(gas, place + 100, new_bytes, 8, pending) == HIROBA_OK);
        INSIST(hiroba_gas_wait(gas, pending) == HIROBA_OK);
    }
    hiroba_gas_pending_destroy(pending);
    hiroba_gas_barrier(gas);
    INSIST(hiroba_gas_get(gas, place + page, found, 4) == HIROBA_OK && found[0] == 5 &&
           found[3] == 8);
    INSIST(hiroba_gas_get(gas, place, found, 5) == HIROBA_OK && found[0] == 1 && found[3] == 3 &&
           found[4] == 4);
    INSIST(hiroba_gas_get(gas, places[0], found, 2) == HIROBA_OK && found[1] == 2);
    INSIST(hiroba_gas_get(gas, place + 107, found, 1) == HIROBA_OK && found[0] == 8);
}

static void gas_others(hiroba_gas* gas, uint64_t page) {
    /* Alone, told to the others; counted in by all; moved about. */
    const struct hiroba_distribution last = {HIROBA_ON_RANK, ranks - 1, 0, 0, 0};
    hiroba_place mine = 0;
    uint64_t old = 0, first = 0, count = 0;
    uint32_t narrow = 0;
    if (rank == 0) INSIST(hiroba_gas_allocate(gas, 2 * page, &last, &mine) == HIROBA_OK);
    mine = hiroba_gas_broadcast(gas, mine, 0);
    for (int i = 0; i < 50; ++i) {
        INSIST(hiroba_gas_atomic64(gas, mine, HIROBA_ADD, 2, 0, &old) == HIROBA_OK);
        INSIST(hiroba_gas_atomic32(gas, mine + 8, HIROBA_ADD, 1, 0, NULL) == HIROBA_OK);
    }
    hiroba_gas_barrier(gas);
    INSIST(hiroba_gas_atomic64(gas, mine, HIROBA_COMPARE_SWAP, 100 * ranks, 100 * ranks, &old) ==
           HIROBA_OK);
    INSIST(old == 100 * ranks);
    INSIST(hiroba_gas_atomic32(gas, mine + 8, HIROBA_OR, 0, 0, &narrow) == HIROBA_OK &&
           narrow == 50 * ranks);
    hiroba_gas_barrier(gas);
    hiroba_view* view = NULL;
    void* memory = NULL;
    if (rank == 0 && ranks > 1)
        INSIST(hiroba_gas_view_open(gas, mine, 2 * page, &view, &memory) == HIROBA_BUSY);
    if (rank == 0) {
        INSIST(hiroba_gas_own(gas, mine, 2 * page) == HIROBA_OK);
        INSIST(hiroba_gas_view_open(gas, mine, 2 * page, &view, &memory) == HIROBA_OK);
        INSIST(*(uint64_t*)memory == 100 * ranks);
        *(uint64_t*)memory = 3;
        hiroba_gas_view_close(view);
    }
    hiroba_gas_barrier(gas);
    INSIST(hiroba_gas_get(gas, mine, &old, 8) == HIROBA_OK && old == 3);
    hiroba_gas_barrier(gas);
    if (rank != 0) EXPECT(hiroba_gas_free(gas, mine), HIROBA_REFUSED, "rank 0");
    if (rank == 0) INSIST(hiroba_gas_free(gas, mine) == HIROBA_OK);
    hiroba_gas_barrier(gas);
    EXPECT(hiroba_gas_get(gas, mine, &old, 8), HIROBA_REFUSED, "not allocated");
    EXPECT(hiroba_gas_get(gas, 0, &old, 8), HIROBA_REFUSED, "null");
    EXPECT(hiroba_gas_atomic64(gas, mine, HIROBA_MIN, 2, 0, &old), HIROBA_REFUSED, "operation 6");
    EXPECT(hiroba_gas_get_strided(gas, mine, 8, (size_t)1 << 63, 4, &old), HIROBA_REFUSED,
           "local memory has 0");
    struct hiroba_distribution wrong = {7, 0, 0, 0, 0};
    EXPECT(hiroba_gas_allocate(gas, 8, &wrong, &mine), HIROBA_REFUSED, "kind 7");
    EXPECT(hiroba_gas_allocate(gas, (uint64_t)1 << 60, NULL, &mine), HIROBA_NO_MEMORY,
           "HIROBA_GAS");
    INSIST(hiroba_gas_share(gas, ranks - 1, 10, &last, &first, &count) == HIROBA_OK && first == 0 &&
           count == 10);
}

static void gas(hiroba_gas* gas) {
    const uint64_t page = hiroba_gas_page_bytes(gas);
    hiroba_place place = 0;
    INSIST(hiroba_gas_allocate_together(gas, pages * page, NULL, &place) == HIROBA_OK);
    uint64_t first = 0, count = 0, end = 0;
    for (uint32_t of = 0; of < ranks; ++of) {
        INSIST(hiroba_gas_share(gas, of, pages * page, NULL, &first, &count) == HIROBA_OK);
        INSIST(first == end && count % page == 0);
        end = first + count;
        hiroba_view* view = NULL;
        void* memory = NULL;
        if (of == rank && count != 0) {
            INSIST(hiroba_gas_view_open(gas, place + first, count, &view, &memory) == HIROBA_OK);
            hiroba_gas_view_close(view);
        }
    }
    INSIST(end == pages * page);
    gas_copies(gas, place, page);
    hiroba_gas_barrier(gas);
    INSIST(hiroba_gas_free(gas, place) == HIROBA_OK);
    gas_others(gas, page);
}

static void dsm(hiroba_dsm* dsm) {
    enum { share = 1000, times = 50 };
    struct shared {
        uint64_t atomic, guarded, swapped;
        uint32_t numbers[16 * share];
    }* shared = NULL;
    void* memory = NULL;
    INSIST(hiroba_dsm_allocate_together(dsm, sizeof *shared, &memory) == HIROBA_OK);
    shared = memory;
    INSIST(shared->atomic == 0);
    for (uint32_t i = 0; i < share; ++i) shared->numbers[rank * share + i] = rank + i;
    hiroba_dsm_barrier(dsm);
    for (uint32_t of = 0; of < ranks; ++of)
        for (uint32_t i = 0; i < share; ++i) INSIST(shared->numbers[of * share + i] == of + i);
    const uint64_t key = (uint64_t)(uintptr_t)shared;
    uint64_t old = 0, all[16];
    for (int i = 0; i < times; ++i) {
        if (i % 2 == 0 || hiroba_dsm_try_lock(dsm, key) != HIROBA_OK) hiroba_dsm_lock(dsm, key);
        ++shared->guarded;
        hiroba_dsm_unlock(dsm, key);
        INSIST(hiroba_dsm_atomic64(dsm, &shared->atomic, HIROBA_ADD, 3, 0, &old) == HIROBA_OK);
    }
    INSIST(hiroba_dsm_atomic64(dsm, &shared->swapped, HIROBA_COMPARE_SWAP, rank + 1, 0, &old) ==
           HIROBA_OK);
    hiroba_dsm_all_gather(dsm, old == 0, all);
    uint64_t winners = 0;
    for (uint32_t i = 0; i < ranks; ++i) winners += all[i];
    INSIST(winners == 1);
    INSIST(shared->guarded == (uint64_t)times * ranks && shared->atomic == 3u * times * ranks);
    hiroba_dsm_barrier(dsm);
    /* A loop that waits for a plain store. */
    if (rank == 0) {
        shared->numbers[0] = 4711;
        hiroba_dsm_flush(dsm);
    } else {
        while (((volatile struct shared*)shared)->numbers[0] != 4711) hiroba_dsm_flush(dsm);
    }
    INSIST(hiroba_dsm_broadcast(dsm, rank * 10, ranks - 1) == (ranks - 1) * 10);
    EXPECT(hiroba_dsm_allocate(dsm, 8, 24, &memory), HIROBA_REFUSED, "24");
    EXPECT(hiroba_dsm_atomic64(dsm, &shared->atomic, HIROBA_MAX, 1, 0, NULL), HIROBA_REFUSED,
           "operation 7");
    EXPECT(hiroba_dsm_atomic64(dsm, (uint64_t*)(void*)((char*)shared + 4), HIROBA_ADD, 1, 0, NULL),
           HIROBA_REFUSED, "aligned");
    EXPECT(hiroba_dsm_allocate(dsm, (size_t)1 << 60, 0, &memory), HIROBA_NO_MEMORY, "HIROBA_HEAP");
    INSIST(hiroba_dsm_allocate(dsm, 100, 4096, &memory) == HIROBA_OK &&
           (uintptr_t)memory % 4096 == 0);
    hiroba_dsm_free(dsm, memory);
    hiroba_dsm_free(dsm, NULL);
    hiroba_dsm_barrier(dsm);
    if (rank == 0) hiroba_dsm_free(dsm, shared);
}

int main(void) {
    hiroba_gas* space = NULL;
    hiroba_dsm* memory = NULL;
    if (hiroba_gas_open(&space) != HIROBA_OK || hiroba_dsm_open(&memory) != HIROBA_OK)
        return fprintf(stderr, "%s\n", hiroba_last_error()), 78;
    rank = hiroba_gas_rank(space);
    ranks = hiroba_gas_ranks(space);
    INSIST(hiroba_dsm_rank(memory) == rank && hiroba_dsm_ranks(memory) == ranks && ranks <= 16);
    gas(space);
    dsm(memory);
    if (rank == 0) printf("gas and dsm from C on %u ranks: right\n", ranks);
    fflush(stdout);
    hiroba_dsm_close(memory);
    hiroba_gas_close(space);
    return 0;
}
