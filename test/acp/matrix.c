/* SPDX-License-Identifier: BSD-3-Clause
   Role: copies of every size and alignment between all pairs of ranks, started by any rank, with
   every kind of order; each byte at dst is checked, and that none around it changed.
   Usage: matrix LARGEST_BYTES. Memory: registered (heap) and starter, both as either end. */
#include <string.h>

#include "check.h"

static const size_t sizes[] = {1, 7, 8, 64, 1500, 65536, 1 << 20, 64 << 20};
static const size_t offsets[] = {0, 1, 5, 4093};
enum { guard = 64, ranks_max = 8 };

static uint64_t src_of[ranks_max], dst_of[ranks_max];
static unsigned char *src_bytes, *dst_bytes;

static unsigned char byte_of(uint64_t seed, size_t at) {
    return (unsigned char)(mixed(seed + (at >> 3)) >> (at & 7) * 8);
}

static void fill(unsigned char* to, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes; ++i) to[i] = byte_of(seed, i);
}

static void check_arrived(size_t bytes, size_t offset, uint64_t seed, const char* what) {
    const unsigned char* at = dst_bytes + offset;
    for (size_t i = 0; i < guard; ++i) {
        CHECK(at[i] == 0xee && at[guard + bytes + i] == 0xee, "%s: byte %zu outside", what, i);
    }
    for (size_t i = 0; i < bytes; ++i) {
        CHECK(at[guard + i] == byte_of(seed, i), "%s of %zu bytes, offset %zu: byte %zu is %d",
              what, bytes, offset, i, at[guard + i]);
    }
}

static acp_handle_t order_of(int kind, acp_handle_t last) {
    switch (kind) {
        case 0: return (acp_handle_t)ACP_HANDLE_NULL;
        case 1: return (acp_handle_t)ACP_HANDLE_ALL;
        case 2: return (acp_handle_t)ACP_HANDLE_CONT;
        default: return last;
    }
}

/* `starter` bytes at the ends instead of registered ones, where they fit. */
static void one_case(int who, int to, int from, size_t bytes, size_t at, size_t skew, int kind) {
    static uint64_t seed = 1;
    ++seed;
    const int rank = acp_rank();
    const size_t src_offset = offsets[at], dst_offset = offsets[(at + skew) % 4];
    if (rank == from) fill(src_bytes + src_offset, bytes, seed);
    if (rank == to) memset(dst_bytes + dst_offset, 0xee, bytes + 2 * guard);
    acp_sync();
    if (rank == who) {
        /* Halves, the second ordered behind the first: what the order says is seen elsewhere. */
        const size_t half = bytes / 2;
        const acp_ga_t dst = dst_of[to] + dst_offset + guard, src = src_of[from] + src_offset;
        const acp_handle_t first = acp_copy(dst, src, half, (acp_handle_t)ACP_HANDLE_NULL);
        const acp_handle_t second =
            acp_copy(dst + half, src + half, bytes - half, order_of(kind, first));
        CHECK(first > 0 && second > first, "handles %ld, %ld", (long)first, (long)second);
        acp_complete(second);
        CHECK(acp_inquire(second) == 0, "handle %ld after acp_complete", (long)second);
    }
    acp_sync();
    if (rank == to) check_arrived(bytes, dst_offset, seed, "copy");
}

static void all_pairs(size_t bytes, int kinds) {
    const int ranks = acp_procs();
    const int places = bytes > 65536 ? 1 : 4;
    for (int who = 0; who < ranks; ++who) {
        /* Of large copies one rank starts each, in turn: time grows with the bytes. */
        for (int pair = 0; pair < ranks * ranks; ++pair) {
            const int to = pair / ranks, from = pair % ranks;
            if (bytes > 65536 && (pair + 1) % ranks != who) continue;
            for (int at = 0; at < places; ++at) {
                for (int kind = 0; kind < kinds; ++kind) {
                    one_case(who, to, from, bytes, (size_t)at, (size_t)(kind + at) % 4, kind);
                }
            }
        }
    }
}

int main(int argc, char** argv) {
    const size_t largest = argc > 1 ? (size_t)atoll(argv[1]) : 65536;
    if (acp_init(&argc, &argv) != 0) return 1;
    const size_t room = largest + 8192;
    src_bytes = malloc(room);
    dst_bytes = malloc(room);
    acp_atkey_t src_key = acp_register_memory(src_bytes, room, 0);
    acp_atkey_t dst_key = acp_register_memory(dst_bytes, room, 0);
    exchange(acp_query_ga(src_key, src_bytes), src_of, 0);
    exchange(acp_query_ga(dst_key, dst_bytes), dst_of, ranks_max);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= largest; ++i) {
        all_pairs(sizes[i], sizes[i] > (1 << 20) ? 1 : 4);
    }
    /* Again with starter memory as the source, then at both ends: what is mapped is copied
       directly. */
    const acp_ga_t mine = acp_query_starter_ga(acp_rank());
    src_bytes = (unsigned char*)acp_query_address(mine) + 1024;
    exchange(mine + 1024, src_of, 0);
    for (size_t i = 0; i < 5; ++i) all_pairs(sizes[i], 4);
    dst_bytes = (unsigned char*)acp_query_address(mine) + 16384;
    exchange(mine + 16384, dst_of, ranks_max);
    for (size_t i = 0; i < 5; ++i) all_pairs(sizes[i], 4);
    CHECK(acp_unregister_memory(src_key) == 0 && acp_unregister_memory(dst_key) == 0, "keys");
    if (acp_rank() == 0)
        printf("matrix up to %zu bytes on %d ranks: right\n", largest, acp_procs());
    return acp_finalize();
}
