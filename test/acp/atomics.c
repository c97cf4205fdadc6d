/* SPDX-License-Identifier: BSD-3-Clause
   Role: atomics of every kind from all ranks and several threads at once, with exact results, and
   two locks made of them. Usage: atomics ROUNDS THREADS.

   Each word of rank r's heap and starter memory is changed by all. Old values go to a third rank's
   memory or the caller's, so every way a command can take is under load. */
#include <pthread.h>
#include <string.h>

#include "check.h"

enum { ranks_max = 8, threads_max = 8 };

/* Of each rank, in registered memory and once more in starter memory (from byte 4096). */
struct words {
    uint64_t add8, or8, and8, xor8, swap8, cas8, ticket_next, ticket_serving, mcs_tail, guarded;
    uint64_t guarded_copy;
    uint32_t add4, or4, and4, xor4, swap4, cas4, guarded4, filler;
};
/* Results of one thread, in registered memory of its rank; mcs_* are its queue entry. */
struct results {
    uint64_t old, value, zero, mcs_next, mcs_locked;
    uint64_t swapped_sum, cas_done;
};

static int rank, ranks, rounds, threads;
static struct words* heap_words;
static struct words* starter_words;
static struct results* mine;
static uint64_t words_of[2][ranks_max], results_of[ranks_max];

#define WORD(kind, of, field) (words_of[kind][of] + offsetof(struct words, field))
#define RESULT(of, thread, field) \
    (results_of[of] + sizeof(struct results) * (thread) + offsetof(struct results, field))
static const acp_handle_t none = (acp_handle_t)ACP_HANDLE_NULL;

static uint64_t load_old(int thread) {
    return __atomic_load_n(&mine[thread].old, __ATOMIC_ACQUIRE);
}

/* Until the compare-and-swap has added `by`: exact under any contention. */
static void add_by_cas8(acp_ga_t word, acp_ga_t old, int thread, uint64_t by) {
    uint64_t guess = 0;
    for (;;) {
        acp_complete(acp_cas8(old, word, guess, guess + by, none));
        const uint64_t found = load_old(thread);
        if (found == guess) return;
        guess = found;
    }
}

static void add_by_cas4(acp_ga_t word, acp_ga_t old, int thread, uint32_t by) {
    uint32_t guess = 0;
    for (;;) {
        acp_complete(acp_cas4(old, word, guess, guess + by, none));
        const uint32_t found = (uint32_t)load_old(thread);
        if (found == guess) return;
        guess = found;
    }
}

static void counters(int thread) {
    const unsigned me = (unsigned)(rank * threads + thread);
    const acp_ga_t old = RESULT(rank, thread, old);
    for (int i = 0; i < rounds; ++i) {
        const int at = (int)(mixed(me * 1000003u + (unsigned)i) % (unsigned)ranks), kind = i & 1;
        const acp_ga_t away = RESULT((rank + 1 + i) % ranks, thread, zero);
        acp_add8(away, WORD(kind, at, add8), 0x100000001u, none);
        acp_add4(away, WORD(kind, at, add4), 3, none);
        acp_xor8(away, WORD(kind, at, xor8), mixed(me ^ (unsigned)i), none);
        acp_xor4(away, WORD(kind, at, xor4), (uint32_t)mixed(me ^ (unsigned)i), none);
        acp_or8(away, WORD(kind, at, or8), 1ull << me % 64, none);
        acp_or4(away, WORD(kind, at, or4), 1u << me % 32, none);
        acp_and8(away, WORD(kind, at, and8), ~(1ull << me % 64), none);
        acp_and4(away, WORD(kind, at, and4), ~(1u << me % 32), none);
        add_by_cas8(WORD(kind, at, cas8), old, thread, 7);
        add_by_cas4(WORD(kind, at, cas4), old, thread, 9);
        /* What one swap stores another finds: the sum of all found and what is left is known. */
        acp_complete(acp_swap8(old, WORD(kind, at, swap8), me + 1u, none));
        mine[thread].swapped_sum += load_old(thread);
        __atomic_store_n(&mine[thread].old, 0, __ATOMIC_RELEASE);
        acp_complete(acp_swap4(old, WORD(kind, at, swap4), me + 1u, none));
        mine[thread].swapped_sum += (uint32_t)load_old(thread);
    }
}

/* The guarded word is read and written, not added to: two in the section lose a count. The copy
   is ordered behind the write, so that it is never behind when the lock is free. */
static void in_section(int kind, int thread) {
    const acp_ga_t value = RESULT(rank, thread, value);
    acp_complete(acp_copy(value, WORD(kind, 0, guarded), 8, none));
    mine[thread].value += 1;
    const acp_handle_t put = acp_copy(WORD(kind, 0, guarded), value, 8, none);
    acp_complete(acp_copy(WORD(kind, 0, guarded_copy), value, 8, put));
}

static void ticket_lock_rounds(int thread) {
    const acp_ga_t old = RESULT(rank, thread, old), value = RESULT(rank, thread, value);
    for (int i = 0; i < rounds / 4; ++i) {
        acp_complete(acp_add8(old, WORD(0, 0, ticket_next), 1, none));
        const uint64_t ticket = load_old(thread);
        do {
            acp_complete(acp_copy(value, WORD(0, 0, ticket_serving), 8, none));
        } while (__atomic_load_n(&mine[thread].value, __ATOMIC_ACQUIRE) != ticket);
        in_section(0, thread);
        acp_complete(acp_add8(old, WORD(0, 0, ticket_serving), 1, none));
    }
}

/* Mellor-Crummey & Scott, TOCS 9(1), 1991: each waits on a word of its own memory. */
static void mcs_lock_rounds(int thread) {
    const acp_ga_t me = RESULT(rank, thread, mcs_next), old = RESULT(rank, thread, old);
    const acp_ga_t value = RESULT(rank, thread, value);
    for (int i = 0; i < rounds / 4; ++i) {
        __atomic_store_n(&mine[thread].mcs_next, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&mine[thread].mcs_locked, 1, __ATOMIC_RELEASE);
        acp_complete(acp_swap8(old, WORD(1, 0, mcs_tail), me, none));
        const acp_ga_t before = load_old(thread);
        if (before != ACP_GA_NULL) {
            mine[thread].value = me;
            acp_complete(acp_copy(before, value, 8, none));
            while (__atomic_load_n(&mine[thread].mcs_locked, __ATOMIC_ACQUIRE) != 0) acp_inquire(1);
        }
        in_section(1, thread);
        if (__atomic_load_n(&mine[thread].mcs_next, __ATOMIC_ACQUIRE) == 0) {
            acp_complete(acp_cas8(old, WORD(1, 0, mcs_tail), me, 0, none));
            if (load_old(thread) == me) continue;
            while (__atomic_load_n(&mine[thread].mcs_next, __ATOMIC_ACQUIRE) == 0) acp_inquire(1);
        }
        mine[thread].value = 0;
        acp_complete(acp_copy(mine[thread].mcs_next + 8, value, 8, none));
    }
}

static void* work(void* argument) {
    const int thread = (int)(intptr_t)argument;
    counters(thread);
    ticket_lock_rounds(thread);
    mcs_lock_rounds(thread);
    return NULL;
}

static void add_up(struct words* sum, const struct words* of) {
    sum->add8 += of->add8;
    sum->add4 += of->add4;
    sum->xor8 ^= of->xor8;
    sum->xor4 ^= of->xor4;
    sum->or8 |= of->or8;
    sum->or4 |= of->or4;
    sum->and8 &= of->and8;
    sum->and4 &= of->and4;
    sum->cas8 += of->cas8;
    sum->cas4 += of->cas4;
    sum->swap8 += of->swap8 + of->swap4;
}

/* Rank 0 fetches everybody's words and compares them with what was done. */
static void check_totals(void) {
    static struct words words[2][ranks_max];
    static struct results results[ranks_max][threads_max];
    const acp_ga_t to = acp_query_ga(acp_register_memory(words, sizeof words, 0), words);
    const acp_ga_t and = acp_query_ga(acp_register_memory(results, sizeof results, 0), results);
    struct words sum = {.and8 = ~0ull, .and4 = ~0u}, want = {.and8 = ~0ull, .and4 = ~0u};
    uint64_t swapped = 0, stored = 0;
    for (int r = 0; r < ranks; ++r) {
        for (int kind = 0; kind < 2; ++kind) {
            const uint64_t at = (uint64_t)((char*)&words[kind][r] - (char*)words);
            acp_complete(acp_copy(to + at, words_of[kind][r], sizeof(struct words), none));
            add_up(&sum, &words[kind][r]);
        }
        const uint64_t at = (uint64_t)((char*)results[r] - (char*)results);
        acp_complete(acp_copy(and+at, results_of[r], sizeof results[r], none));
        for (int t = 0; t < threads; ++t) {
            const unsigned me = (unsigned)(r * threads + t);
            swapped += results[r][t].swapped_sum;
            stored += 2 * (me + 1ull) * (uint64_t)rounds;
            want.or8 |= 1ull << me % 64;
            want.or4 |= 1u << me % 32;
            for (int i = 0; i < rounds; ++i) {
                want.xor8 ^= mixed(me ^ (unsigned)i);
                want.xor4 ^= (uint32_t)mixed(me ^ (unsigned)i);
            }
        }
    }
    const uint64_t made = (uint64_t)(ranks * threads) * (uint64_t)rounds;
    CHECK(sum.add8 == made * 0x100000001u && sum.add4 == (uint32_t)(made * 3), "add %lx %x",
          (long)sum.add8, sum.add4);
    CHECK(sum.xor8 == want.xor8 && sum.xor4 == want.xor4, "xor %lx %x", (long)sum.xor8, sum.xor4);
    CHECK(sum.or8 == want.or8 && sum.or4 == want.or4, "or %lx %x", (long)sum.or8, sum.or4);
    CHECK(sum.and8 == ~want.or8 && sum.and4 == ~want.or4, "and %lx %x", (long)sum.and8, sum.and4);
    CHECK(sum.cas8 == made * 7 && sum.cas4 == (uint32_t)(made * 9), "cas %ld %d", (long)sum.cas8,
          sum.cas4);
    CHECK(sum.swap8 + swapped == stored, "swap %ld + %ld, not %ld", (long)sum.swap8, (long)swapped,
          (long)stored);
    const uint64_t entries = (uint64_t)(ranks * threads) * (uint64_t)(rounds / 4);
    for (int kind = 0; kind < 2; ++kind) {
        const struct words* of = &words[kind][0];
        CHECK(of->guarded == entries && of->guarded_copy == entries,
              "%s lock: %ld and %ld, not %ld", kind ? "MCS" : "ticket", (long)of->guarded,
              (long)of->guarded_copy, (long)entries);
    }
    printf("%ld rounds on %d ranks of %d threads: exact\n", (long)made, ranks, threads);
}

int main(int argc, char** argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    threads = argc > 2 ? atoi(argv[2]) : 2;
    if (acp_init(&argc, &argv) != 0) return 1;
    rank = acp_rank();
    ranks = acp_procs();
    const acp_ga_t starter = acp_query_starter_ga(rank);
    heap_words = calloc(1, sizeof *heap_words);
    starter_words = (struct words*)((char*)acp_query_address(starter) + 4096);
    heap_words->and8 = starter_words->and8 = ~0ull;
    heap_words->and4 = starter_words->and4 = ~0u;
    mine = calloc(threads_max, sizeof *mine);
    exchange(acp_query_ga(acp_register_memory(heap_words, sizeof *heap_words, 0), heap_words),
             words_of[0], 0);
    exchange(starter + 4096, words_of[1], ranks_max);
    exchange(acp_query_ga(acp_register_memory(mine, threads_max * sizeof *mine, 0), mine),
             results_of, 2 * ranks_max);
    pthread_t started[threads_max];
    for (int t = 1; t < threads; ++t) {
        CHECK(pthread_create(&started[t], NULL, work, (void*)(intptr_t)t) == 0, "thread %d", t);
    }
    work(NULL);
    for (int t = 1; t < threads; ++t) pthread_join(started[t], NULL);
    acp_complete((acp_handle_t)ACP_HANDLE_ALL);
    acp_sync();
    if (rank == 0) check_totals();
    return acp_finalize();
}
