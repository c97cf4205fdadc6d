/* SPDX-License-Identifier: BSD-3-Clause
   Role: see shmem.h. A symmetric address is an offset in one memory of hiroba's net, equal on all
   PEs. Puts are blocking: what they wrote is there when they return; quiet waits for those that are
   not. */
#include "shmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "hiroba/hiroba.h"

static hiroba_net* net;
static hiroba_memory memory;
static hiroba_pending* pending;
static struct heap heap;
static char* base;
static size_t heap_bytes;
shmem_team_t SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED;

_Noreturn static void end(const char* call, const char* why) {
    fprintf(stderr, "PE %d: %s: %s\n", net == NULL ? -1 : shmem_my_pe(), call, why);
    exit(1); /* ends the job */
}

static void check(int code, const char* call) {
    if (code != HIROBA_OK) end(call, hiroba_last_error());
}

/* The offset of a symmetric address; the range is checked by the call that it goes to. */
static uint64_t offset_of(const void* address, const char* call) {
    const uint64_t offset = (uint64_t)((const char*)address - base);
    if (offset >= heap_bytes) end(call, "the address is none of shmem_malloc()");
    return offset;
}

/* --- the job ------------------------------------------------------------------------------------
 */

void shmem_init(void) {
    const char* size = getenv("SHMEM_SYMMETRIC_SIZE");
    heap_bytes = heap_rounded(size != NULL ? strtoull(size, NULL, 0) : (size_t)64 << 20, 4096);
    if (hiroba_net_open(&net) != HIROBA_OK) {
        fprintf(stderr, "shmem_init: %s\n", hiroba_last_error());
        exit(78);
    }
    check(hiroba_net_allocate(net, heap_bytes + 4096, &memory), "shmem_init");
    check(hiroba_net_connect(net), "shmem_init");
    pending = hiroba_pending_create();
    base = hiroba_net_local(net, memory);
    heap.free = heap_range_of(4096, heap_bytes, NULL); /* the first page has the offset 0 */
    heap_bytes += 4096;
    check(hiroba_net_team(net, &SHMEM_TEAM_WORLD), "shmem_init");
    uint32_t first = 0;
    while (first != hiroba_net_rank(net) && hiroba_net_mapped(net, memory, first) == NULL) ++first;
    check(hiroba_team_split(SHMEM_TEAM_WORLD, first, 0, &SHMEM_TEAM_SHARED), "shmem_init");
}

void shmem_finalize(void) {
    if (net == NULL) return;
    shmem_barrier_all();
    hiroba_pending_destroy(pending);
    hiroba_team_free(SHMEM_TEAM_SHARED);
    hiroba_team_free(SHMEM_TEAM_WORLD);
    hiroba_net_close(net);
    net = NULL;
}

void shmem_global_exit(int status) {
    fflush(NULL);
    _Exit(status);
}

int shmem_my_pe(void) { return (int)hiroba_net_rank(net); }
int shmem_n_pes(void) { return (int)hiroba_net_ranks(net); }

/* --- memory -------------------------------------------------------------------------------------
 */

void* shmem_align(size_t alignment, size_t bytes) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096) return NULL;
    const size_t offset =
        bytes == 0 ? 0 : heap_take(&heap, bytes, alignment < heap_grain ? heap_grain : alignment);
    shmem_barrier_all();
    return offset == 0 ? NULL : base + offset;
}

void* shmem_malloc(size_t bytes) { return shmem_align(heap_grain, bytes); }

void* shmem_calloc(size_t count, size_t bytes) {
    if (bytes != 0 && count > SIZE_MAX / bytes) return NULL;
    void* made = shmem_align(heap_grain, count * bytes);
    if (made != NULL) memset(made, 0, count * bytes);
    shmem_barrier_all();
    return made;
}

void shmem_free(void* address) {
    shmem_barrier_all();
    if (address != NULL && !heap_give_back(&heap, (size_t)offset_of(address, "shmem_free")))
        end("shmem_free", "no memory of shmem_malloc() begins there");
}

void* shmem_ptr(const void* dest, int pe) {
    char* there = pe == shmem_my_pe() ? base : hiroba_net_mapped(net, memory, (uint32_t)pe);
    return there == NULL ? NULL : there + offset_of(dest, "shmem_ptr");
}

/* --- copies -------------------------------------------------------------------------------------
 */

void shmem_putmem(void* dest, const void* source, size_t bytes, int pe) {
    check(hiroba_net_put(net, (uint32_t)pe, memory, offset_of(dest, "shmem_put"), source, bytes),
          "shmem_put");
}
void shmem_getmem(void* dest, const void* source, size_t bytes, int pe) {
    check(hiroba_net_get(net, (uint32_t)pe, memory, offset_of(source, "shmem_get"), dest, bytes),
          "shmem_get");
}
void shmem_putmem_nbi(void* dest, const void* source, size_t bytes, int pe) {
    check(hiroba_net_start_put(net, (uint32_t)pe, memory, offset_of(dest, "shmem_put_nbi"), source,
                               bytes, pending),
          "shmem_put_nbi");
}
void shmem_getmem_nbi(void* dest, const void* source, size_t bytes, int pe) {
    check(hiroba_net_start_get(net, (uint32_t)pe, memory, offset_of(source, "shmem_get_nbi"), dest,
                               bytes, pending),
          "shmem_get_nbi");
}
void shmem_quiet(void) { check(hiroba_net_wait(net, pending), "shmem_quiet"); }
void shmem_fence(void) { shmem_quiet(); }

void shmem_putmem_signal(void* dest, const void* source, size_t bytes, uint64_t* signal,
                         uint64_t value, int operation, int pe) {
    check(hiroba_net_put_signal(net, (uint32_t)pe, memory, offset_of(dest, "shmem_put_signal"),
                                source, bytes, offset_of(signal, "shmem_put_signal"),
                                operation == SHMEM_SIGNAL_ADD ? HIROBA_ADD : HIROBA_SWAP, value),
          "shmem_put_signal");
}
uint64_t shmem_signal_fetch(const uint64_t* signal) {
    return __atomic_load_n(signal, __ATOMIC_SEQ_CST);
}

/* By SHMEM_CMP_*. */
static const int comparisons[] = {HIROBA_EQUAL,         HIROBA_NOT_EQUAL, HIROBA_GREATER,
                                  HIROBA_GREATER_EQUAL, HIROBA_LESS,      HIROBA_LESS_EQUAL};

uint64_t shmem_signal_wait_until(uint64_t* signal, int comparison, uint64_t value) {
    int64_t found = 0;
    check(hiroba_net_wait_word(net, memory, offset_of(signal, "shmem_signal_wait_until"),
                               comparisons[comparison], (int64_t)value, UINT64_MAX, &found),
          "shmem_signal_wait_until");
    return (uint64_t)found;
}

/* --- atomics ------------------------------------------------------------------------------------
 */

static uint64_t atomic(const void* at, size_t bytes, int operation, uint64_t operand,
                       uint64_t expected, int pe) {
    const uint64_t offset = offset_of(at, "an atomic of shmem");
    uint64_t old = 0;
    uint32_t narrow = 0;
    if (bytes == 8) {
        check(hiroba_net_atomic64(net, (uint32_t)pe, memory, offset, operation, operand, expected,
                                  &old),
              "an atomic of shmem");
        return old;
    }
    check(hiroba_net_atomic32(net, (uint32_t)pe, memory, offset, operation, (uint32_t)operand,
                              (uint32_t)expected, &narrow),
          "an atomic of shmem");
    return narrow;
}

/* --- teams --------------------------------------------------------------------------------------
 */

int shmem_team_my_pe(shmem_team_t team) {
    return team == SHMEM_TEAM_INVALID ? -1 : (int)hiroba_team_member(team);
}
int shmem_team_n_pes(shmem_team_t team) {
    return team == SHMEM_TEAM_INVALID ? -1 : (int)hiroba_team_members(team);
}
int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                             const shmem_team_config_t* config, long mask, shmem_team_t* made) {
    (void)config, (void)mask;
    *made = SHMEM_TEAM_INVALID;
    const int pes = shmem_team_n_pes(parent), last = start + (size - 1) * stride;
    if (size < 1 || (stride == 0 && size > 1) || start < 0 || start >= pes || last < 0 ||
        last >= pes)
        return -1;
    const int far = shmem_team_my_pe(parent) - start, step = stride == 0 ? 1 : stride;
    const int is_in = far % step == 0 && far / step >= 0 && far / step < size;
    check(
        hiroba_team_split(parent, is_in ? 0 : UINT32_MAX, is_in ? (uint32_t)(far / step) : 0, made),
        "shmem_team_split_strided");
    return 0;
}
int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t* xconfig,
                        long xmask, shmem_team_t* xaxis, const shmem_team_config_t* yconfig,
                        long ymask, shmem_team_t* yaxis) {
    (void)xconfig, (void)xmask, (void)yconfig, (void)ymask;
    *xaxis = *yaxis = SHMEM_TEAM_INVALID;
    if (parent == SHMEM_TEAM_INVALID || xrange < 1) return -1;
    const uint32_t pe = hiroba_team_member(parent), across = (uint32_t)xrange;
    check(hiroba_team_split(parent, pe / across, pe % across, xaxis), "shmem_team_split_2d");
    check(hiroba_team_split(parent, pe % across, pe / across, yaxis), "shmem_team_split_2d");
    return 0;
}
void shmem_team_destroy(shmem_team_t team) {
    if (team != SHMEM_TEAM_WORLD && team != SHMEM_TEAM_SHARED) hiroba_team_free(team);
}
int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to) {
    if (pe < 0 || pe >= shmem_team_n_pes(from)) return -1;
    const uint32_t rank = hiroba_team_rank(from, (uint32_t)pe);
    for (int other = 0; other < shmem_team_n_pes(to); ++other)
        if (hiroba_team_rank(to, (uint32_t)other) == rank) return other;
    return -1;
}
int shmem_team_sync(shmem_team_t team) { return hiroba_team_barrier(team, NULL); }

/* --- collectives --------------------------------------------------------------------------------
 */

void shmem_barrier_all(void) {
    shmem_quiet();
    hiroba_net_barrier(net);
}
void shmem_sync_all(void) { hiroba_net_barrier(net); }

int shmem_broadcastmem(shmem_team_t team, void* dest, const void* source, size_t bytes, int root) {
    if (shmem_team_my_pe(team) == root) memmove(dest, source, bytes);
    return hiroba_team_broadcast(team, (uint32_t)root, dest, bytes, NULL);
}
int shmem_fcollectmem(shmem_team_t team, void* dest, const void* source, size_t bytes) {
    return hiroba_team_all_gather(team, source, bytes, dest, NULL);
}
int shmem_alltoallmem(shmem_team_t team, void* dest, const void* source, size_t bytes) {
    return hiroba_team_all_to_all(team, source, dest, bytes, NULL);
}

/* The lock is PE 0's word: 0 free, else the holder's number + 1. */
int shmem_test_lock(long* lock) {
    return atomic(lock, sizeof *lock, HIROBA_COMPARE_SWAP, (uint64_t)shmem_my_pe() + 1, 0, 0) != 0;
}
void shmem_set_lock(long* lock) {
    while (shmem_test_lock(lock) != 0) hiroba_net_pause(net);
}
void shmem_clear_lock(long* lock) {
    shmem_quiet();
    if (atomic(lock, sizeof *lock, HIROBA_SWAP, 0, 0, 0) != (uint64_t)shmem_my_pe() + 1)
        end("shmem_clear_lock", "this PE does not hold the lock");
}

/* --- each type ----------------------------------------------------------------------------------
 */

/* Gathers the PEs' values and combines them in the order of the PEs: the same bits everywhere. */
#define DEFINE_REDUCE(NAME, TYPE, WHAT, COMBINED)                                         \
    int shmem_##NAME##_##WHAT##_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, \
                                       size_t count) {                                    \
        const size_t pes = hiroba_team_members(team);                                     \
        TYPE* all = malloc(pes * count * sizeof *all + 1);                                \
        if (all == NULL) end("shmem_" #NAME "_" #WHAT "_reduce", "no memory");            \
        check(hiroba_team_all_gather(team, source, count * sizeof *all, all, NULL),       \
              "a reduction");                                                             \
        for (size_t i = 0; i < count; ++i) {                                              \
            TYPE a = all[i];                                                              \
            for (size_t pe = 1; pe < pes; ++pe) {                                         \
                const TYPE b = all[pe * count + i];                                       \
                a = (TYPE)(COMBINED);                                                     \
            }                                                                             \
            dest[i] = a;                                                                  \
        }                                                                                 \
        free(all);                                                                        \
        return 0;                                                                         \
    }
/* Bits of a value in a word of an atomic, and back. */
#define DEFINE_COPIES(NAME, TYPE)                                                                  \
    static uint64_t NAME##_word(TYPE value) {                                                      \
        uint64_t word = 0;                                                                         \
        memcpy(&word, &value, sizeof value);                                                       \
        return word;                                                                               \
    }                                                                                              \
    static TYPE NAME##_of_word(uint64_t word) {                                                    \
        TYPE value;                                                                                \
        memcpy(&value, &word, sizeof value);                                                       \
        return value;                                                                              \
    }                                                                                              \
    void shmem_##NAME##_put(TYPE* dest, const TYPE* source, size_t count, int pe) {                \
        shmem_putmem(dest, source, count * sizeof *dest, pe);                                      \
    }                                                                                              \
    void shmem_##NAME##_get(TYPE* dest, const TYPE* source, size_t count, int pe) {                \
        shmem_getmem(dest, source, count * sizeof *dest, pe);                                      \
    }                                                                                              \
    void shmem_##NAME##_put_nbi(TYPE* dest, const TYPE* source, size_t count, int pe) {            \
        shmem_putmem_nbi(dest, source, count * sizeof *dest, pe);                                  \
    }                                                                                              \
    void shmem_##NAME##_get_nbi(TYPE* dest, const TYPE* source, size_t count, int pe) {            \
        shmem_getmem_nbi(dest, source, count * sizeof *dest, pe);                                  \
    }                                                                                              \
    void shmem_##NAME##_p(TYPE* dest, TYPE value, int pe) {                                        \
        shmem_putmem(dest, &value, sizeof value, pe);                                              \
    }                                                                                              \
    TYPE shmem_##NAME##_g(const TYPE* source, int pe) {                                            \
        TYPE value;                                                                                \
        shmem_getmem(&value, source, sizeof value, pe);                                            \
        return value;                                                                              \
    }                                                                                              \
    TYPE shmem_##NAME##_atomic_fetch(const TYPE* source, int pe) {                                 \
        return NAME##_of_word(atomic(source, sizeof *source, HIROBA_OR, 0, 0, pe));                \
    }                                                                                              \
    void shmem_##NAME##_atomic_set(TYPE* dest, TYPE value, int pe) {                               \
        atomic(dest, sizeof *dest, HIROBA_SWAP, NAME##_word(value), 0, pe);                        \
    }                                                                                              \
    TYPE shmem_##NAME##_atomic_swap(TYPE* dest, TYPE value, int pe) {                              \
        return NAME##_of_word(atomic(dest, sizeof *dest, HIROBA_SWAP, NAME##_word(value), 0, pe)); \
    }                                                                                              \
    DEFINE_REDUCE(NAME, TYPE, sum, a + b)                                                          \
    DEFINE_REDUCE(NAME, TYPE, min, b < a ? b : a)                                                  \
    DEFINE_REDUCE(NAME, TYPE, max, b > a ? b : a)                                                  \
    DEFINE_REDUCE(NAME, TYPE, prod, a* b)                                                          \
    int shmem_##NAME##_broadcast(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count,  \
                                 int root) {                                                       \
        return shmem_broadcastmem(team, dest, source, count * sizeof *dest, root);                 \
    }                                                                                              \
    int shmem_##NAME##_fcollect(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { \
        return shmem_fcollectmem(team, dest, source, count * sizeof *dest);                        \
    }                                                                                              \
    int shmem_##NAME##_alltoall(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { \
        return shmem_alltoallmem(team, dest, source, count * sizeof *dest);                        \
    }
#define DEFINE_FETCH(NAME, TYPE, WHAT, OPERATION)                                                \
    TYPE shmem_##NAME##_atomic_fetch_##WHAT(TYPE* dest, TYPE value, int pe) {                    \
        return NAME##_of_word(atomic(dest, sizeof *dest, OPERATION, NAME##_word(value), 0, pe)); \
    }
#define DEFINE_INTEGERS(NAME, TYPE)                                                               \
    DEFINE_REDUCE(NAME, TYPE, and, a& b)                                                          \
    DEFINE_REDUCE(NAME, TYPE, or, a | b)                                                          \
    DEFINE_REDUCE(NAME, TYPE, xor, a ^ b)                                                         \
    DEFINE_FETCH(NAME, TYPE, add, HIROBA_ADD)                                                     \
    DEFINE_FETCH(NAME, TYPE, and, HIROBA_AND)                                                     \
    DEFINE_FETCH(NAME, TYPE, or, HIROBA_OR)                                                       \
    DEFINE_FETCH(NAME, TYPE, xor, HIROBA_XOR)                                                     \
    void shmem_##NAME##_atomic_add(TYPE* dest, TYPE value, int pe) {                              \
        (void)shmem_##NAME##_atomic_fetch_add(dest, value, pe);                                   \
    }                                                                                             \
    TYPE shmem_##NAME##_atomic_fetch_inc(TYPE* dest, int pe) {                                    \
        return shmem_##NAME##_atomic_fetch_add(dest, 1, pe);                                      \
    }                                                                                             \
    void shmem_##NAME##_atomic_inc(TYPE* dest, int pe) {                                          \
        (void)shmem_##NAME##_atomic_fetch_add(dest, 1, pe);                                       \
    }                                                                                             \
    TYPE shmem_##NAME##_atomic_compare_swap(TYPE* dest, TYPE expected, TYPE value, int pe) {      \
        return NAME##_of_word(atomic(dest, sizeof *dest, HIROBA_COMPARE_SWAP, NAME##_word(value), \
                                     NAME##_word(expected), pe));                                 \
    }                                                                                             \
    int shmem_##NAME##_test(TYPE* word, int comparison, TYPE value) {                             \
        const TYPE found = __atomic_load_n(word, __ATOMIC_SEQ_CST);                               \
        switch (comparison) {                                                                     \
            case SHMEM_CMP_EQ: return found == value;                                             \
            case SHMEM_CMP_NE: return found != value;                                             \
            case SHMEM_CMP_GT: return found > value;                                              \
            case SHMEM_CMP_GE: return found >= value;                                             \
            case SHMEM_CMP_LT: return found < value;                                              \
            default: return found <= value;                                                       \
        }                                                                                         \
    }                                                                                             \
    void shmem_##NAME##_wait_until(TYPE* word, int comparison, TYPE value) {                      \
        while (!shmem_##NAME##_test(word, comparison, value)) hiroba_net_pause(net);              \
    }
SHMEM_NUMBERS_(DEFINE_COPIES)
SHMEM_INTEGERS_(DEFINE_INTEGERS)
