/* SPDX-License-Identifier: BSD-3-Clause
   Role: memory registered with every color there is, from and to all ranks: what is copied by any
   color is right, a flag of one color does not overtake data of another, atomics on words that
   several colors name are exact. Run it over a network that delays and reorders.
   Usage: colors COLORS ROUNDS [SECONDS] */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { data_bytes = 20000, ranks_max = 8, colors_max = 4, adds = 50 };

struct box {
    uint64_t flag, counter, old, unused[5];
    unsigned char data[ranks_max][data_bytes];
};

static int rank, ranks, colors;
static struct box *box, *out;
static uint64_t box_of[colors_max][ranks_max], out_of[colors_max][ranks_max];

#define AT(table, color, of, field) (table[color][of] + offsetof(struct box, field))

static const acp_handle_t none = (acp_handle_t)ACP_HANDLE_NULL;

static unsigned char byte_of(int from, uint64_t number, int i) {
    return (unsigned char)mixed(number * 64 + (unsigned)from * 8 + (unsigned)i % 7);
}

static void check_data(int from, uint64_t number, const char* what) {
    for (int i = 0; i < data_bytes; ++i) {
        CHECK(box->data[from][i] == byte_of(from, number, i), "%s of rank %d, number %ld: byte %d",
              what, from, (long)number, i);
    }
}

/* Everybody puts into everybody, the source of one color and the place of another. */
static void all_pairs(uint64_t number, int src_color, int dst_color) {
    for (int i = 0; i < data_bytes; ++i) out->data[rank][i] = byte_of(rank, number, i);
    for (int to = 0; to < ranks; ++to) {
        acp_copy(AT(box_of, dst_color, to, data) + (uint64_t)rank * data_bytes,
                 AT(out_of, src_color, rank, data) + (uint64_t)rank * data_bytes, data_bytes, none);
    }
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
    acp_sync();
    for (int from = 0; from < ranks; ++from) check_data(from, number, "a copy");
    acp_sync();
}

/* Data by one color, then a flag by another, ordered by `kind`; from the rank or from the one
   before it. The receiver sees the flag and looks at the data. */
static void flag_behind_data(uint64_t number, int data_color, int flag_color, int kind) {
    const int source = kind == 3 ? 0 : 1, to = ranks - 1;
    if (rank == source) {
        for (int i = 0; i < data_bytes; ++i) out->data[source][i] = byte_of(source, number, i);
    }
    acp_sync();
    if (rank == 1) {
        out->flag = number;
        acp_handle_t order = acp_copy(
            AT(box_of, data_color, to, data) + (uint64_t)source * data_bytes,
            AT(out_of, data_color, source, data) + (uint64_t)source * data_bytes, data_bytes, none);
        if (kind == 1) order = (acp_handle_t)ACP_HANDLE_ALL;
        if (kind >= 2) order = (acp_handle_t)ACP_HANDLE_CONT;
        acp_copy(AT(box_of, flag_color, to, flag), AT(out_of, flag_color, 1, flag), 8, order);
        acp_complete((acp_handle_t)ACP_HANDLE_ALL);
    }
    if (rank == to) {
        while (__atomic_load_n(&box->flag, __ATOMIC_ACQUIRE) < number) acp_inquire(1);
        check_data(source, number, "data behind a flag");
    }
    acp_sync();
}

/* One word, named by all colors. */
static void count_together(uint64_t rounds_before) {
    for (int i = 0; i < adds; ++i) {
        const int color = i % colors;
        acp_add8(AT(out_of, color, rank, old), AT(box_of, (color + 1) % colors, i % ranks, counter),
                 1, none);
    }
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
    acp_sync();
    uint64_t expected = 0;
    for (int i = 0; i < adds; ++i) expected += i % ranks == rank;
    expected *= (uint64_t)ranks * (rounds_before + 1);
    CHECK(box->counter == expected, "%ld of %ld additions", (long)box->counter, (long)expected);
    acp_sync();
}

int main(int argc, char** argv) {
    const int rounds = argc > 2 ? atoi(argv[2]) : 3;
    alarm(argc > 3 ? (unsigned)atoi(argv[3]) : 50);
    if (acp_init(&argc, &argv) != 0) return 1;
    rank = acp_rank();
    ranks = acp_procs();
    colors = acp_colors();
    CHECK(ranks >= 3, "start at least 3 ranks");
    CHECK(argc < 2 || colors == atoi(argv[1]), "%d colors", colors);
    box = calloc(1, sizeof *box);
    out = calloc(1, sizeof *out);
    for (int color = 0; color < colors; ++color) {
        const acp_ga_t at = acp_query_ga(acp_register_memory(box, sizeof *box, color), box);
        CHECK(acp_query_color(at) == color, "color %d of color %d", acp_query_color(at), color);
        exchange(at, box_of[color], 0);
        exchange(acp_query_ga(acp_register_memory(out, sizeof *out, color), out), out_of[color],
                 ranks_max);
    }
    CHECK(acp_register_memory(box, sizeof *box, colors) == ACP_ATKEY_NULL, "color %d", colors);
    uint64_t number = 0;
    for (int round = 0; round < rounds; ++round) {
        if (round == 2 && rank == 1 && getenv("COLORS_TEST_KILL") != NULL) raise(SIGKILL);
        for (int pair = 0; pair < colors * colors; ++pair) {
            all_pairs(++number, pair / colors, pair % colors);
            for (int kind = 0; kind < 4; ++kind)
                flag_behind_data(++number, pair / colors, pair % colors, kind);
        }
        count_together((uint64_t)round);
    }
    if (rank == 0) printf("%d rounds with %d colors on %d ranks: right\n", rounds, colors, ranks);
    return acp_finalize();
}
