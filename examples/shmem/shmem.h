/* SPDX-License-Identifier: BSD-3-Clause
   Role: a subset of OpenSHMEM 1.5 on hiroba/hiroba.h, as an example of a runtime on the C face:
   symmetric heap, puts and gets, signals, atomics, waits, teams and their collectives, locks.
   Global variables are not symmetric: memory of shmem_malloc() is. Every PE enters main: hiroba run
   --spmd -n N ./program. SHMEM_SYMMETRIC_SIZE: bytes of the heap, 64 MiB unless set. */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE };
enum { SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD };
enum { SHMEM_MAJOR_VERSION = 1, SHMEM_MINOR_VERSION = 5 };
typedef struct hiroba_team* shmem_team_t;
typedef struct {
    int num_contexts;
} shmem_team_config_t;
#define SHMEM_TEAM_INVALID NULL
extern shmem_team_t SHMEM_TEAM_WORLD;
extern shmem_team_t SHMEM_TEAM_SHARED; /* PEs whose memory shmem_ptr() finds */

void shmem_init(void);
void shmem_finalize(void);
_Noreturn void shmem_global_exit(int status);
int shmem_my_pe(void);
int shmem_n_pes(void);

/* Collective, with the same sizes on all PEs; NULL on all where the heap is full. */
void* shmem_malloc(size_t bytes);
void* shmem_calloc(size_t count, size_t bytes);
void* shmem_align(size_t alignment, size_t bytes);
void shmem_free(void* memory);
/* NULL where `pe`'s memory is not mapped here. */
void* shmem_ptr(const void* dest, int pe);

void shmem_putmem(void* dest, const void* source, size_t bytes, int pe);
void shmem_getmem(void* dest, const void* source, size_t bytes, int pe);
void shmem_putmem_nbi(void* dest, const void* source, size_t bytes, int pe);
void shmem_getmem_nbi(void* dest, const void* source, size_t bytes, int pe);
void shmem_putmem_signal(void* dest, const void* source, size_t bytes, uint64_t* signal,
                         uint64_t value, int operation, int pe);
uint64_t shmem_signal_fetch(const uint64_t* signal);
uint64_t shmem_signal_wait_until(uint64_t* signal, int comparison, uint64_t value);
void shmem_quiet(void);
void shmem_fence(void);

/* Collectives of `parent`; 0, or -1 where the arguments fit no PEs. `config` is not looked at. */
int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                             const shmem_team_config_t* config, long mask, shmem_team_t* made);
int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t* xconfig,
                        long xmask, shmem_team_t* xaxis, const shmem_team_config_t* yconfig,
                        long ymask, shmem_team_t* yaxis);
void shmem_team_destroy(shmem_team_t team);
int shmem_team_my_pe(shmem_team_t team);
int shmem_team_n_pes(shmem_team_t team);
int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to);
int shmem_team_sync(shmem_team_t team);

void shmem_barrier_all(void);
void shmem_sync_all(void);
int shmem_broadcastmem(shmem_team_t team, void* dest, const void* source, size_t bytes, int root);
int shmem_fcollectmem(shmem_team_t team, void* dest, const void* source, size_t bytes);
int shmem_alltoallmem(shmem_team_t team, void* dest, const void* source, size_t bytes);
void shmem_set_lock(long* lock);
void shmem_clear_lock(long* lock);
int shmem_test_lock(long* lock);

/* name, type */
#define SHMEM_INTEGERS_(X)  \
    X(int, int)             \
    X(long, long)           \
    X(longlong, long long)  \
    X(uint, unsigned)       \
    X(ulong, unsigned long) \
    X(int32, int32_t)       \
    X(int64, int64_t)       \
    X(uint32, uint32_t)     \
    X(uint64, uint64_t)     \
    X(size, size_t)
#define SHMEM_NUMBERS_(X) SHMEM_INTEGERS_(X) X(float, float) X(double, double)

#define SHMEM_DECLARE_COPIES_(NAME, TYPE)                                                         \
    void shmem_##NAME##_put(TYPE* dest, const TYPE* source, size_t count, int pe);                \
    void shmem_##NAME##_get(TYPE* dest, const TYPE* source, size_t count, int pe);                \
    void shmem_##NAME##_put_nbi(TYPE* dest, const TYPE* source, size_t count, int pe);            \
    void shmem_##NAME##_get_nbi(TYPE* dest, const TYPE* source, size_t count, int pe);            \
    void shmem_##NAME##_p(TYPE* dest, TYPE value, int pe);                                        \
    TYPE shmem_##NAME##_g(const TYPE* source, int pe);                                            \
    TYPE shmem_##NAME##_atomic_fetch(const TYPE* source, int pe);                                 \
    void shmem_##NAME##_atomic_set(TYPE* dest, TYPE value, int pe);                               \
    TYPE shmem_##NAME##_atomic_swap(TYPE* dest, TYPE value, int pe);                              \
    int shmem_##NAME##_sum_reduce(shmem_team_t team, TYPE* dest, const TYPE* source,              \
                                  size_t count);                                                  \
    int shmem_##NAME##_min_reduce(shmem_team_t team, TYPE* dest, const TYPE* source,              \
                                  size_t count);                                                  \
    int shmem_##NAME##_max_reduce(shmem_team_t team, TYPE* dest, const TYPE* source,              \
                                  size_t count);                                                  \
    int shmem_##NAME##_prod_reduce(shmem_team_t team, TYPE* dest, const TYPE* source,             \
                                   size_t count);                                                 \
    int shmem_##NAME##_broadcast(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count, \
                                 int root);                                                       \
    int shmem_##NAME##_fcollect(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count); \
    int shmem_##NAME##_alltoall(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count);
#define SHMEM_DECLARE_INTEGERS_(NAME, TYPE)                                                        \
    TYPE shmem_##NAME##_atomic_fetch_add(TYPE* dest, TYPE value, int pe);                          \
    void shmem_##NAME##_atomic_add(TYPE* dest, TYPE value, int pe);                                \
    TYPE shmem_##NAME##_atomic_fetch_inc(TYPE* dest, int pe);                                      \
    void shmem_##NAME##_atomic_inc(TYPE* dest, int pe);                                            \
    TYPE shmem_##NAME##_atomic_fetch_and(TYPE* dest, TYPE value, int pe);                          \
    TYPE shmem_##NAME##_atomic_fetch_or(TYPE* dest, TYPE value, int pe);                           \
    TYPE shmem_##NAME##_atomic_fetch_xor(TYPE* dest, TYPE value, int pe);                          \
    TYPE shmem_##NAME##_atomic_compare_swap(TYPE* dest, TYPE expected, TYPE value, int pe);        \
    void shmem_##NAME##_wait_until(TYPE* word, int comparison, TYPE value);                        \
    int shmem_##NAME##_test(TYPE* word, int comparison, TYPE value);                               \
    int shmem_##NAME##_and_reduce(shmem_team_t team, TYPE* dest, const TYPE* source,               \
                                  size_t count);                                                   \
    int shmem_##NAME##_or_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count); \
    int shmem_##NAME##_xor_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count);
SHMEM_NUMBERS_(SHMEM_DECLARE_COPIES_)
SHMEM_INTEGERS_(SHMEM_DECLARE_INTEGERS_)

#ifdef __cplusplus
}
#endif

#endif
