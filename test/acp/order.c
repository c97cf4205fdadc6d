/* SPDX-License-Identifier: BSD-3-Clause
   Role: for each kind of order a case in which the wrong order would be seen. Run it over a network
   that delays and reorders. Usage: order ROUNDS [SECONDS].

   The receiver watches a flag and then looks at what must have come before it. `none` must not
   wait: a command behind one that can't finish completes first. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { data_bytes = 40000, ranks_max = 8 };

struct box {
    uint64_t flag, answer, counter, unused[5];
    unsigned char data[data_bytes];
};

static int rank, ranks, rounds;
static struct box *box, *out;
static uint64_t box_of[ranks_max], out_of[ranks_max];

#define AT(table, of, field) (table[of] + offsetof(struct box, field))

static uint64_t wait_for_flag(uint64_t wanted) {
    uint64_t found;
    while ((found = __atomic_load_n(&box->flag, __ATOMIC_ACQUIRE)) < wanted) acp_inquire(1);
    return found;
}

static void check_data(uint64_t number, const char* what) {
    for (int i = 0; i < data_bytes; ++i) {
        CHECK(box->data[i] == (unsigned char)number, "%s, round %ld: byte %d is %d", what,
              (long)number, i, box->data[i]);
    }
}

/* rank 0 puts data and then a flag into its neighbour; `kind` says how the flag is ordered. */
static void put_then_flag(uint64_t number, int kind) {
    const acp_handle_t none = (acp_handle_t)ACP_HANDLE_NULL;
    memset(out->data, (int)number, data_bytes);
    out->flag = number;
    const acp_handle_t data = acp_copy(AT(box_of, 1, data), AT(out_of, 0, data), data_bytes, none);
    /* Another command in between: `all` and handles have to skip it, `continue` must not follow
       what it follows. */
    acp_handle_t order = data;
    if (kind == 1) order = (acp_handle_t)ACP_HANDLE_ALL;
    if (kind == 2) order = (acp_handle_t)ACP_HANDLE_CONT;
    if (kind == 0) acp_add8(AT(out_of, 0, unused), AT(box_of, 1, unused), 1, none);
    acp_copy(AT(box_of, 1, flag), AT(out_of, 0, flag), 8, order);
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
}

/* Data, then a counter raised by an atomic that continues it: the effects are at one place. */
static void put_then_count(uint64_t number) {
    memset(out->data, (int)number, data_bytes);
    acp_copy(AT(box_of, 1, data), AT(out_of, 0, data), data_bytes, (acp_handle_t)ACP_HANDLE_NULL);
    acp_add8(AT(out_of, 0, unused), AT(box_of, 1, flag), 1, (acp_handle_t)ACP_HANDLE_CONT);
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
}

/* From rank 1 to the last rank, started by rank 0; then a flag from another source: the ways
   differ, so the flag has to wait for the answer. */
static void third_party_then_flag(uint64_t number, int kind) {
    const int to = ranks - 1;
    out->flag = number;
    acp_handle_t order = acp_copy(AT(box_of, to, data), AT(out_of, 1, data), data_bytes,
                                  (acp_handle_t)ACP_HANDLE_NULL);
    if (kind == 6) order = (acp_handle_t)ACP_HANDLE_ALL;
    if (kind == 7) order = (acp_handle_t)ACP_HANDLE_CONT;
    acp_copy(AT(box_of, to, flag), AT(out_of, 0, flag), 8, order);
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
}

/* A chain of swaps on one remote word: each finds what the one before has stored. */
static void chain(acp_handle_t order_kind) {
    enum { links = 64 };
    acp_complete(acp_swap8(AT(out_of, 0, answer), AT(box_of, 1, counter), 1000, 0));
    acp_ga_t to = AT(out_of, 0, data);
    for (uint64_t i = 1; i <= links; ++i) {
        acp_swap8(to + 8 * i, AT(box_of, 1, counter), 1000 + i, order_kind);
    }
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
    for (uint64_t i = 1; i <= links; ++i) {
        uint64_t found;
        memcpy(&found, out->data + 8 * i, 8);
        CHECK(found == 1000 + i - 1, "link %ld found %ld", (long)i, (long)found);
    }
}

/* A get and then a put of what was got: reading its source early would send old bytes. */
static void get_then_put(uint64_t number) {
    acp_complete(acp_copy(AT(box_of, 1, answer), AT(out_of, 0, flag), 8, 0));
    acp_copy(AT(out_of, 0, answer), AT(box_of, 1, answer), 8, 0);
    acp_copy(AT(box_of, 1, flag), AT(out_of, 0, answer), 8, (acp_handle_t)ACP_HANDLE_CONT);
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
    CHECK(out->answer == number, "got %ld in round %ld", (long)out->answer, (long)number);
}

static void wait_until_stopped(int process) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    while (state != 'T') {
        FILE* file = fopen(path, "r");
        if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
        if (file != NULL) fclose(file);
        usleep(100);
    }
}

/* Rank 1 is stopped, so a copy to it cannot end, and one ordered behind it cannot start. Those
   ordered behind nothing do, here and at another rank. */
static void none_passes(void) {
    uint64_t processes[ranks_max];
    exchange((uint64_t)getpid(), processes, 2 * ranks_max);
    if (rank == 2) box->answer = 88;
    acp_sync();
    if (rank == 0) {
        volatile uint64_t* const here = &box->answer;
        volatile uint64_t* const from_there = &out->answer;
        *here = *from_there = 0;
        out->flag = 77;
        kill((pid_t)processes[1], SIGSTOP);
        wait_until_stopped((int)processes[1]);
        acp_copy(AT(box_of, 1, unused), AT(out_of, 0, flag), 8, 0);
        const acp_handle_t blocked =
            acp_copy(AT(box_of, 2, unused), AT(out_of, 0, flag), 8, (acp_handle_t)ACP_HANDLE_ALL);
        acp_copy(AT(box_of, 0, answer), AT(out_of, 0, flag), 8, 0);
        CHECK(*here == 77, "a copy within the rank waited for others");
        acp_copy(AT(out_of, 0, answer), AT(box_of, 2, answer), 8, 0);
        while (*from_there != 88) acp_inquire(blocked);
        CHECK(acp_inquire(blocked) == 1, "a copy to a stopped rank is complete");
        kill((pid_t)processes[1], SIGCONT);
        acp_complete(blocked);
    }
    acp_sync();
}

/* More than the queue holds, most of them waiting for others: all are carried out, once. */
static void more_than_the_queue(void) {
    enum { commands = 9000 };
    uint64_t found = 0;
    acp_handle_t handles[4] = {0};
    if (rank != 0) return;
    acp_complete(acp_swap8(AT(out_of, 0, answer), AT(box_of, 1, counter), 0, 0));
    for (int i = 0; i < commands; ++i) {
        acp_handle_t order = (acp_handle_t)ACP_HANDLE_NULL;
        if (i % 50 == 7) order = (acp_handle_t)ACP_HANDLE_ALL;
        if (i % 50 > 30) order = (acp_handle_t)ACP_HANDLE_CONT;
        if (i % 10 == 3) order = handles[i / 10 % 4];
        handles[i % 4] = acp_add8(AT(out_of, 0, unused), AT(box_of, 1, counter), 1, order);
        CHECK(handles[i % 4] > 0, "command %d", i);
    }
    acp_complete((acp_handle_t)ACP_HANDLE_CONT);
    acp_complete(acp_copy(AT(out_of, 0, answer), AT(box_of, 1, counter), 8, 0));
    found = out->answer;
    CHECK(found == commands, "%ld of %d commands were carried out", (long)found, commands);
}

int main(int argc, char** argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 20;
    alarm(argc > 2 ? (unsigned)atoi(argv[2]) : 50); /* a lost order may also mean a lost flag */
    if (acp_init(&argc, &argv) != 0) return 1;
    rank = acp_rank();
    ranks = acp_procs();
    CHECK(ranks >= 3, "start at least 3 ranks");
    box = calloc(1, sizeof *box);
    out = calloc(1, sizeof *out);
    exchange(acp_query_ga(acp_register_memory(box, sizeof *box, 0), box), box_of, 0);
    exchange(acp_query_ga(acp_register_memory(out, sizeof *out, 0), out), out_of, ranks_max);
    uint64_t number = 0;
    for (int round = 0; round < rounds; ++round) {
        for (int kind = 0; kind < 8; ++kind) {
            ++number;
            const int between_others = kind == 4 || kind > 5, to = between_others ? ranks - 1 : 1;
            if (rank == 1 && between_others) memset(out->data, (int)number, data_bytes);
            acp_sync();
            if (rank == 0 && kind < 3) put_then_flag(number, kind);
            if (rank == 0 && kind == 3) put_then_count(number);
            if (rank == 0 && between_others) third_party_then_flag(number, kind);
            if (rank == 0 && kind == 5) out->flag = number, get_then_put(number);
            if (rank == to) {
                wait_for_flag(number);
                if (kind != 5) check_data(number, "data behind the flag");
            }
            acp_sync();
            /* The flags of all go on together. */
            if (rank != 0) box->flag = number;
            acp_sync();
        }
        if (rank == 0) chain((acp_handle_t)ACP_HANDLE_CONT), chain((acp_handle_t)ACP_HANDLE_ALL);
        acp_sync();
    }
    none_passes();
    more_than_the_queue();
    if (rank == 0) printf("%d rounds of order: kept\n", rounds);
    return acp_finalize();
}
