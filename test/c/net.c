/* SPDX-License-Identifier: BSD-3-Clause
   Role: every call of the C face of the communication layer, with answers checked. Usage: c_net */
#include <math.h>

#include "check.h"

enum { room = 300000, words = 64 };
/* Offsets in the first memory: what each rank has for each other. */
enum {
    at_sum = 0,
    at_double = 8,
    at_float = 16,
    at_min = 24,

    at_max32 = 40,
    at_swap = 48
};

struct mail {
    uint64_t sum, payload;
};

static uint32_t rank, ranks;

static void arrived(void* context, uint32_t from, const uint64_t* arguments, size_t count,
                    const void* payload, size_t bytes) {
    struct mail* mail = context;
    for (size_t i = 0; i < count; ++i) mail->sum += arguments[i] * (from + 1);
    for (size_t i = 0; i < bytes; ++i) mail->payload += ((const unsigned char*)payload)[i];
}

static void copies(hiroba_net* net, hiroba_memory bulk) {
    const uint32_t next = (rank + 1) % ranks;
    const size_t bytes = room / 2 - 3; /* longer than a message, of an odd length */
    unsigned char *mine = malloc(bytes), *back = calloc(bytes, 1);
    for (size_t i = 0; i < bytes; ++i) mine[i] = (unsigned char)(i * 7 + rank);
    INSIST(hiroba_net_put(net, next, bulk, 1, mine, bytes) == HIROBA_OK);
    INSIST(hiroba_net_get(net, next, bulk, 1, back, bytes) == HIROBA_OK);
    INSIST(memcmp(mine, back, bytes) == 0);
    INSIST(hiroba_net_put(net, next, bulk, 0, NULL, 0) == HIROBA_OK);
    INSIST(hiroba_net_get(net, next, bulk, room, NULL, 0) == HIROBA_OK);
    hiroba_net_barrier(net);
    const uint32_t before = (rank + ranks - 1) % ranks;
    const unsigned char* here = hiroba_net_local(net, bulk);
    for (size_t i = 0; i < bytes; ++i) INSIST(here[1 + i] == (unsigned char)(i * 7 + before));
    INSIST(here[0] == 0 && here[1 + bytes] == 0);
    const unsigned char* there = hiroba_net_mapped(net, bulk, next);
    INSIST(there != NULL || strcmp(hiroba_net_provider(net), "shm") != 0);
    if (there != NULL) INSIST(there[1] == mine[0]);

    /* Started together. */
    hiroba_pending* pending = hiroba_pending_create();
    INSIST(pending != NULL);
    int numbers[words], found[words] = {0};
    for (int i = 0; i < words; ++i) {
        numbers[i] = 1000 * (int)rank + i;
        INSIST(hiroba_net_start_put(net, next, bulk, room / 2 + 4 * (unsigned)i, &numbers[i], 4,
                                    pending) == HIROBA_OK);
    }
    INSIST(hiroba_net_wait(net, pending) == HIROBA_OK);
    hiroba_net_barrier(net);
    for (uint32_t of = 0; of < ranks; ++of) {
        for (int i = 0; i < words; ++i)
            INSIST(hiroba_net_start_get(net, of, bulk, room / 2 + 4 * (unsigned)i, &found[i], 4,
                                        pending) == HIROBA_OK);
        INSIST(hiroba_net_wait(net, pending) == HIROBA_OK);
        for (int i = 0; i < words; ++i)
            INSIST(found[i] == 1000 * (int)((of + ranks - 1) % ranks) + i);
    }
    hiroba_pending_destroy(pending);
    free(mine);
    free(back);
}

static void atomics(hiroba_net* net, hiroba_memory memory) {
    enum { times = 200 };
    uint64_t old = 0;
    uint32_t narrow = 0;
    double half = 0;
    float third = 0;
    for (int i = 0; i < times; ++i) {
        INSIST(hiroba_net_atomic64(net, 0, memory, at_sum, HIROBA_ADD, rank + 1, 0, NULL) ==
               HIROBA_OK);
        INSIST(hiroba_net_atomic_double(net, 0, memory, at_double, HIROBA_ADD, 0.5, &half) ==
               HIROBA_OK);
        INSIST(hiroba_net_atomic_float(net, 0, memory, at_float, HIROBA_ADD, 1.0f, NULL) ==
               HIROBA_OK);
        INSIST(hiroba_net_atomic_double(net, 0, memory, at_min, HIROBA_MIN,
                                        -(double)(rank * times + (unsigned)i), NULL) == HIROBA_OK);
        INSIST(hiroba_net_atomic32(net, 0, memory, at_max32, HIROBA_MAX,
                                   (uint32_t)(-1 + (int)rank * i), 0, &narrow) == HIROBA_OK);
    }
    INSIST(half >= 0);
    hiroba_net_barrier(net);
    int64_t sum = 0;
    double halves = 0, least = 0;
    INSIST(hiroba_net_atomic64(net, 0, memory, at_sum, HIROBA_OR, 0, 0, &old) == HIROBA_OK);
    sum = (int64_t)old;
    INSIST(sum == times * (int64_t)(ranks * (ranks + 1) / 2));
    INSIST(hiroba_net_get(net, 0, memory, at_double, &halves, 8) == HIROBA_OK);
    INSIST(halves == 0.5 * times * ranks);
    INSIST(hiroba_net_atomic_float(net, 0, memory, at_float, HIROBA_MAX, -1.0f, &third) ==
           HIROBA_OK);
    INSIST(third == (float)(times * ranks));
    INSIST(hiroba_net_get(net, 0, memory, at_min, &least, 8) == HIROBA_OK);
    INSIST(least == -(double)(ranks * times - 1));
    INSIST(hiroba_net_get(net, 0, memory, at_max32, &narrow, 4) == HIROBA_OK);
    INSIST((int32_t)narrow == -1 + (int32_t)(ranks - 1) * (times - 1) ||
           (ranks == 1 && narrow == 0));
    hiroba_net_barrier(net);

    /* One rank's compare-swap wins. */
    const uint64_t mine = rank + 10;
    INSIST(hiroba_net_atomic64(net, 0, memory, at_swap, HIROBA_COMPARE_SWAP, mine, 0, &old) ==
           HIROBA_OK);
    int32_t won = old == 0;
    INSIST(won || (old >= 10 && old < 10 + ranks));
    INSIST(hiroba_net_all_reduce(net, &won, 1, HIROBA_INT32, HIROBA_ADD) == HIROBA_OK);
    INSIST(won == 1);
    if (rank == ranks - 1)
        INSIST(hiroba_net_atomic64(net, 0, memory, at_swap, HIROBA_SWAP, 77, 0, NULL) == HIROBA_OK);
    hiroba_net_barrier(net);
    INSIST(hiroba_net_get(net, 0, memory, at_swap, &old, 8) == HIROBA_OK && old == 77);
    /* A NaN gives way. */
    if (rank == 0) {
        const double nan_value = NAN;
        INSIST(hiroba_net_put(net, 0, memory, at_double, &nan_value, 8) == HIROBA_OK);
        INSIST(hiroba_net_atomic_double(net, 0, memory, at_double, HIROBA_MIN, 3.0, &half) ==
               HIROBA_OK);
        INSIST(half != half);
        INSIST(hiroba_net_atomic_double(net, 0, memory, at_double, HIROBA_MAX, nan_value, &half) ==
               HIROBA_OK);
        INSIST(half == 3.0);
        INSIST(hiroba_net_get(net, 0, memory, at_double, &half, 8) == HIROBA_OK && half == 3.0);
    }
    hiroba_net_barrier(net);
}

/* A ring: each rank waits for the signal of the one before, and looks at the data that it
 * announces. */
static void signals(hiroba_net* net, hiroba_memory bulk) {
    enum { turns = 20, piece = 5000 };
    const uint32_t next = (rank + 1) % ranks;
    unsigned char data[piece];
    const uint64_t signal = room - 8;
    for (int turn = 1; turn <= turns; ++turn) {
        memset(data, turn + (int)rank, sizeof data);
        INSIST(hiroba_net_put_signal(net, next, bulk, 16, data, piece, signal,
                                     turn % 2 ? HIROBA_ADD : HIROBA_SWAP,
                                     turn % 2 ? 1 : (uint64_t)turn) == HIROBA_OK);
        int64_t seen = 0;
        INSIST(hiroba_net_wait_word(net, bulk, signal, HIROBA_GREATER_EQUAL, turn, UINT64_MAX,
                                    &seen) == HIROBA_OK);
        INSIST(seen == turn);
        const unsigned char* here = (unsigned char*)hiroba_net_local(net, bulk) + 16;
        const int before = (int)((rank + ranks - 1) % ranks);
        for (int i = 0; i < piece; ++i) INSIST(here[i] == turn + before);
        hiroba_net_barrier(net);
    }
    INSIST(hiroba_net_wait_word(net, bulk, signal, HIROBA_LESS, 0, 2000000, NULL) == HIROBA_BUSY);
}

/* Memory of all ranks, of each rank, and the program's own, after connect; a swap of 16 bytes. */
static void later(hiroba_net* net) {
    const uint32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    hiroba_memory all = 0, there = 0;
    uint64_t own[2] = {0, 0}, seen[2] = {0, 0};
    INSIST(hiroba_net_allocate(net, 100000, &all) == HIROBA_OK);
    const uint64_t* here = hiroba_net_local(net, all);
    INSIST(here != NULL && here[0] == 0);
    uint64_t word = 1000 + rank;
    INSIST(hiroba_net_put(net, next, all, 99992, &word, 8) == HIROBA_OK);
    EXPECT(hiroba_net_put(net, next, all, 99993, &word, 8), HIROBA_REFUSED, "which has 100000");
    hiroba_net_barrier(net);
    INSIST(here[12499] == 1000 + before);
    const uint64_t pair[2] = {1 + rank, 2 + rank}, zeros[2] = {0, 0};
    INSIST(hiroba_net_compare_swap128(net, next, all, 16, zeros, pair, seen) == HIROBA_OK);
    INSIST(seen[0] == 0 && seen[1] == 0);
    INSIST(hiroba_net_compare_swap128(net, next, all, 16, zeros, zeros, seen) == HIROBA_OK);
    INSIST(seen[0] == 1 + rank && seen[1] == 2 + rank);
    EXPECT(hiroba_net_compare_swap128(net, next, all, 8, zeros, pair, seen), HIROBA_REFUSED,
           "no multiple");
    INSIST(hiroba_net_free(net, all) == HIROBA_OK);
    EXPECT(hiroba_net_free(net, all), HIROBA_REFUSED, "not of memory allocated after connect");

    struct hiroba_exposed mine, *told = malloc(ranks * sizeof mine);
    for (int brings = 0; brings < 2; ++brings) {
        INSIST(hiroba_net_expose(net, brings ? own : NULL, 16, &mine) == HIROBA_OK);
        hiroba_net_all_gather(net, &mine, sizeof mine, told);
        INSIST(hiroba_net_attach(net, &told[next], &there) == HIROBA_OK);
        INSIST(hiroba_net_atomic64(net, next, there, 8, HIROBA_ADD, 5, 0, &word) == HIROBA_OK);
        INSIST(word == 0);
        hiroba_net_barrier(net);
        INSIST(hiroba_net_get(net, next, there, 8, &word, 8) == HIROBA_OK && word == 5);
        hiroba_net_detach(net, there);
        EXPECT(hiroba_net_get(net, next, there, 8, &word, 8), HIROBA_REFUSED, "not registered");
        hiroba_net_barrier(net);
        INSIST(hiroba_net_withdraw(net, &mine) == HIROBA_OK);
        EXPECT(hiroba_net_withdraw(net, &mine), HIROBA_REFUSED, "is not exposed");
    }
    INSIST(own[1] == 5);
    EXPECT(hiroba_net_expose(net, own, 0, &mine), HIROBA_REFUSED, "0 bytes");
    free(told);
}

/* Halves and the whole, several collectives at once. */
static void teams(hiroba_net* net) {
    hiroba_team *all = NULL, *half = NULL, *none = NULL;
    hiroba_pending* pending = hiroba_pending_create();
    INSIST(hiroba_net_team(net, &all) == HIROBA_OK);
    INSIST(hiroba_team_members(all) == ranks && hiroba_team_member(all) == rank);
    INSIST(hiroba_team_split(all, rank % 2, ranks - rank, &half) == HIROBA_OK);
    INSIST(hiroba_team_split(all, UINT32_MAX, 0, &none) == HIROBA_OK && none == NULL);
    const uint32_t members = hiroba_team_members(half), mine = hiroba_team_member(half);
    INSIST(members == (ranks + 1 - rank % 2) / 2 && hiroba_team_rank(half, mine) == rank);
    double sum = rank + 0.5, least = rank;
    int32_t *gathered = calloc(members, 4), *pieces = calloc(members, 4), *out = calloc(members, 4);
    int32_t number = 100 + (int32_t)rank, text = mine == members - 1 ? 77 : 0;
    for (uint32_t i = 0; i < members; ++i) out[i] = 10 * (int32_t)mine + (int32_t)i;
    INSIST(hiroba_team_all_reduce(half, &sum, 1, HIROBA_DOUBLE, HIROBA_ADD, pending) == HIROBA_OK);
    INSIST(hiroba_team_broadcast(half, members - 1, &text, 4, pending) == HIROBA_OK);
    INSIST(hiroba_team_all_gather(half, &number, 4, gathered, pending) == HIROBA_OK);
    INSIST(hiroba_team_barrier(half, pending) == HIROBA_OK);
    INSIST(hiroba_team_reduce(all, ranks - 1, &least, 1, HIROBA_DOUBLE, HIROBA_MIN, pending) ==
           HIROBA_OK);
    INSIST(hiroba_team_all_to_all(half, out, pieces, 4, NULL) == HIROBA_OK);
    INSIST(hiroba_net_wait(net, pending) == HIROBA_OK);
    double wanted = 0;
    for (uint32_t i = 0; i < members; ++i) {
        const uint32_t of = hiroba_team_rank(half, i);
        INSIST(of % 2 == rank % 2 && gathered[i] == 100 + (int32_t)of);
        INSIST(pieces[i] == 10 * (int32_t)i + (int32_t)mine);
        wanted += of + 0.5;
    }
    INSIST(sum == wanted && text == 77 && (rank != ranks - 1 || least == 0));
    INSIST(hiroba_team_gather(half, 0, &number, 4, gathered, NULL) == HIROBA_OK);
    EXPECT(hiroba_team_gather(half, members, &number, 4, gathered, NULL), HIROBA_REFUSED, "member");
    EXPECT(hiroba_team_broadcast(half, 99, &text, 4, NULL), HIROBA_REFUSED, "member 99");
    EXPECT(hiroba_team_all_reduce(half, &sum, 1, 9, HIROBA_ADD, NULL), HIROBA_REFUSED, "type 9");
    EXPECT(hiroba_team_reduce(half, 0, &sum, 1, HIROBA_DOUBLE, HIROBA_OR, NULL), HIROBA_REFUSED,
           "operation 2");
    INSIST(hiroba_team_barrier(all, NULL) == HIROBA_OK);
    hiroba_team_free(half);
    hiroba_team_free(all);
    hiroba_team_free(NULL);
    hiroba_pending_destroy(pending);
    free(gathered), free(pieces), free(out);
}

static size_t count_bytes(void* context, uint32_t from, const void* arguments, size_t bytes,
                          void* result) {
    uint64_t sum = from;
    for (size_t i = 0; i < bytes; ++i) sum += ((const unsigned char*)arguments)[i];
    *(int*)context += 1;
    memcpy(result, &sum, sizeof sum);
    return sizeof sum;
}

static void procedures(hiroba_net* net, const int* calls) {
    enum { times = 50 };
    const uint32_t next = (rank + 1) % ranks;
    unsigned char bytes[times];
    uint64_t sums[times] = {0};
    memset(bytes, 2, sizeof bytes);
    hiroba_pending* pending = hiroba_pending_create();
    for (size_t i = 0; i < times; ++i)
        INSIST(hiroba_net_call(net, next, 200, bytes, i, &sums[i], 8, pending) == HIROBA_OK);
    INSIST(hiroba_net_wait(net, pending) == HIROBA_OK);
    for (size_t i = 0; i < times; ++i) INSIST(sums[i] == rank + 2 * i);
    INSIST(hiroba_net_call(net, rank, 200, NULL, 0, sums, 8, NULL) == HIROBA_OK && sums[0] == rank);
    EXPECT(hiroba_net_call(net, ranks, 200, NULL, 0, sums, 8, NULL), HIROBA_REFUSED, "of rank");
    EXPECT(hiroba_net_call(net, 0, 256, NULL, 0, sums, 8, NULL), HIROBA_REFUSED, "procedure 256");
    hiroba_net_barrier(net);
    INSIST(*calls == times + 1);
    hiroba_pending_destroy(pending);
}

static void together(hiroba_net* net, struct mail* mail) {
    double values[3] = {1.5, (double)rank, -(double)rank};
    INSIST(hiroba_net_all_reduce(net, values, 3, HIROBA_DOUBLE, HIROBA_MAX) == HIROBA_OK);
    INSIST(values[0] == 1.5 && values[1] == ranks - 1 && values[2] == 0);
    int64_t number = (int64_t)rank - 5;
    INSIST(hiroba_net_all_reduce(net, &number, 1, HIROBA_INT64, HIROBA_MIN) == HIROBA_OK);
    INSIST(number == -5);
    float small = 0.25f;
    INSIST(hiroba_net_all_reduce(net, &small, 1, HIROBA_FLOAT, HIROBA_ADD) == HIROBA_OK);
    INSIST(small == 0.25f * (float)ranks);
    char text[16] = "";
    if (rank == ranks - 1) strcpy(text, "from the last");
    hiroba_net_broadcast(net, ranks - 1, text, sizeof text);
    INSIST(strcmp(text, "from the last") == 0);
    uint32_t out[16], in[16];
    hiroba_net_all_gather(net, &rank, sizeof rank, in);
    for (uint32_t i = 0; i < ranks; ++i) INSIST(in[i] == i);
    for (uint32_t i = 0; i < ranks; ++i) out[i] = 100 * rank + i;
    hiroba_net_all_to_all(net, out, in, sizeof *in);
    for (uint32_t i = 0; i < ranks; ++i) INSIST(in[i] == 100 * i + rank);

    const uint64_t arguments[2] = {3, 4};
    const unsigned char payload[3] = {1, 2, 3};
    for (uint32_t to = 0; to < ranks; ++to)
        INSIST(hiroba_net_send(net, to, 9, arguments, 2, payload, 3) == HIROBA_OK);
    const volatile struct mail* seen = mail;
    while (seen->sum != 7 * ranks * (ranks + 1) / 2) hiroba_net_pause(net);
    INSIST(seen->payload == 6 * ranks);
    INSIST(hiroba_net_wake(net, (rank + 1) % ranks) == HIROBA_OK);
}

static void refusals(hiroba_net* net, hiroba_memory memory) {
    uint64_t word = 5;
    EXPECT(hiroba_net_put(net, ranks, memory, 0, &word, 8), HIROBA_REFUSED, "node");
    EXPECT(hiroba_net_get(net, 0, memory, 4090, &word, 8), HIROBA_REFUSED, "4090 + 8");
    INSIST(word == 5);
    EXPECT(hiroba_net_get(net, 0, 999, 0, &word, 8), HIROBA_REFUSED, "999");
    EXPECT(hiroba_net_atomic64(net, 0, memory, 4, HIROBA_ADD, 1, 0, &word), HIROBA_REFUSED,
           "offset 4");
    EXPECT(hiroba_net_atomic64(net, 0, memory, 0, 8, 1, 0, &word), HIROBA_REFUSED, "operation 8");
    EXPECT(hiroba_net_atomic_double(net, 0, memory, 0, HIROBA_SWAP, 1, NULL), HIROBA_REFUSED,
           "operation 4");
    EXPECT(hiroba_net_put_signal(net, 0, memory, 0, &word, 8, 4, HIROBA_ADD, 1), HIROBA_REFUSED,
           "offset 4");
    EXPECT(hiroba_net_put_signal(net, 0, memory, 0, &word, 8, 8, HIROBA_MIN, 1), HIROBA_REFUSED,
           "operation 6");
    EXPECT(hiroba_net_wait_word(net, memory, 4096, HIROBA_EQUAL, 1, 0, NULL), HIROBA_REFUSED,
           "4096");
    EXPECT(hiroba_net_send(net, 0, 64, NULL, 0, NULL, 0), HIROBA_REFUSED, "message 64");
    EXPECT(hiroba_net_send(net, 0, 9, NULL, 7, NULL, 0), HIROBA_REFUSED, "7 arguments");
    EXPECT(hiroba_net_all_reduce(net, &word, 1, 4, HIROBA_ADD), HIROBA_REFUSED, "type 4");
    EXPECT(hiroba_net_all_reduce(net, &word, 1, HIROBA_INT64, HIROBA_OR), HIROBA_REFUSED,
           "operation 2");
    EXPECT(hiroba_net_wake(net, ranks), HIROBA_REFUSED, "rank");
    hiroba_memory late = 0;
    EXPECT(hiroba_net_allocate(net, (size_t)1 << 45, &late), HIROBA_NO_MEMORY, "no room for");
    EXPECT(hiroba_net_connect(net), HIROBA_NO_JOB, "second");
    INSIST(strcmp(hiroba_strerror(HIROBA_OK), "done") == 0);
}

int main(void) {
    struct mail mail = {0, 0};
    int calls = 0;
    hiroba_net* net = NULL;
    hiroba_memory memory = 0, bulk = 0, none = 0;
    uint64_t word = 0;
    INSIST(hiroba_last_error()[0] == 0);
    if (hiroba_net_open(&net) != HIROBA_OK) return fprintf(stderr, "%s\n", hiroba_last_error()), 78;
    rank = hiroba_net_rank(net);
    ranks = hiroba_net_ranks(net);
    INSIST(ranks <= 16);
    EXPECT(hiroba_net_allocate(net, 0, &none), HIROBA_REFUSED, "0 bytes");
    INSIST(hiroba_net_allocate(net, 4096, &memory) == HIROBA_OK);
    INSIST(hiroba_net_allocate(net, room, &bulk) == HIROBA_OK);
    INSIST(hiroba_net_handler(net, 9, arrived, &mail) == HIROBA_OK);
    INSIST(hiroba_net_procedure(net, 200, count_bytes, &calls) == HIROBA_OK);
    EXPECT(hiroba_net_procedure(net, 256, count_bytes, &calls), HIROBA_REFUSED, "256");
    EXPECT(hiroba_net_handler(net, 64, arrived, &mail), HIROBA_REFUSED, "64");
    EXPECT(hiroba_net_get(net, 0, memory, 0, &word, 8), HIROBA_REFUSED, "connect");
    INSIST(hiroba_net_connect(net) == HIROBA_OK);
    copies(net, bulk);
    atomics(net, memory);
    signals(net, bulk);
    together(net, &mail);
    later(net);
    teams(net);
    procedures(net, &calls);
    refusals(net, memory);
    hiroba_net_barrier(net);
    if (rank == 0)
        printf("net from C on %u ranks over %s: right\n", ranks, hiroba_net_provider(net));
    fflush(stdout);
    hiroba_net_close(net);
    hiroba_net_close(NULL);
    return 0;
}
