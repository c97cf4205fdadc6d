/* SPDX-License-Identifier: BSD-3-Clause
   Role: the C face of the layers below OpenMP: net (one-sided access, atomics, messages,
   collectives), gas (global memory whose pages move) and dsm (shared memory). C99; C++ too. What is
   promised is what hiroba/net.hpp, hiroba/gas.hpp and hiroba/dsm.hpp say.

   A program that uses it is started with `hiroba run --spmd -n N ./program`: every rank enters
   main. Link with hiroba::c (CMake) or hiroba_c (pkg-config). First page: docs/tutorials/c.md. A
   Fortran module: hiroba/hiroba.f90. The three layers may be open together in one process.

   Calls return HIROBA_OK or another code below; hiroba_last_error() then has one line that names
   rank, argument and numbers. Where a call fails, what it would have filled in is as it was. Sizes
   and offsets are in bytes, times in nanoseconds, ranks from 0. Any thread, at once, unless said
   otherwise; not in signal handlers, and blocking calls not in handlers of messages. A call that
   breaks the contract so that others would wait for ever ends the job with one line. */
#ifndef HIROBA_HIROBA_H
#define HIROBA_HIROBA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIROBA_API __attribute__((visibility("default")))

enum hiroba_code {
    HIROBA_OK = 0,
    HIROBA_REFUSED = 1,   /* an argument is wrong; nothing was done */
    HIROBA_NO_JOB = 2,    /* the job could not be joined, or a way to a rank does not open */
    HIROBA_NO_MEMORY = 3, /* no room: which setting gives more is in the line */
    HIROBA_PEER_LOST = 4, /* a rank died: whether the access happened is unknown */
    HIROBA_BUSY = 5       /* a lock is held, or the time has passed; not an error */
};

/* What a code means, a constant text. */
HIROBA_API const char* hiroba_strerror(int code);
/* The line of this thread's last call that returned neither HIROBA_OK nor HIROBA_BUSY; "" if there
   was none. Valid until this thread's next such call. */
HIROBA_API const char* hiroba_last_error(void);

/* Operations of atomics and reductions. Integers of 4 and 8 bytes take all in atomics; float and
   double take add, min and max. HIROBA_MIN and HIROBA_MAX of integers compare them as signed; of
   floating point a NaN gives way to a number. */
enum hiroba_operation {
    HIROBA_ADD = 0,
    HIROBA_AND = 1,
    HIROBA_OR = 2,
    HIROBA_XOR = 3,
    HIROBA_SWAP = 4,
    HIROBA_COMPARE_SWAP = 5, /* stores `operand` where the value is `expected` */
    HIROBA_MIN = 6,
    HIROBA_MAX = 7
};
enum hiroba_type { HIROBA_INT32 = 0, HIROBA_INT64 = 1, HIROBA_FLOAT = 2, HIROBA_DOUBLE = 3 };
enum hiroba_comparison {
    HIROBA_EQUAL = 0,
    HIROBA_NOT_EQUAL = 1,
    HIROBA_LESS = 2,
    HIROBA_LESS_EQUAL = 3,
    HIROBA_GREATER = 4,
    HIROBA_GREATER_EQUAL = 5
};

/* --- net: memory of every rank, read and written by any -----------------------------------------
   Life: open, allocate and handler (the same on every rank, in the same order), connect, work,
   close. One at a time in a process. */

typedef struct hiroba_net hiroba_net;
/* Memory of equal size on every rank; the same number on all. */
typedef uint32_t hiroba_memory;
/* Counts puts and gets that were started. One thread at a time waits for it. */
typedef struct hiroba_pending hiroba_pending;
/* Runs on the thread that polls, one at a time; arguments and payload are borrowed until it
   returns. It must not wait. */
typedef void (*hiroba_handler)(void* context, uint32_t from, const uint64_t* arguments,
                               size_t count, const void* payload, size_t bytes);

/* Joins the job, before any other thread starts. */
HIROBA_API int hiroba_net_open(hiroba_net** net);
/* Zeroed memory of `bytes` bytes, from 1, on every rank. It lives until close, or free. Before
   connect, or, as a collective, after it. */
HIROBA_API int hiroba_net_allocate(hiroba_net* net, size_t bytes, hiroba_memory* memory);
/* Collective: gives memory that was allocated after connect back. */
HIROBA_API int hiroba_net_free(hiroba_net* net, hiroba_memory memory);
/* Before connect: what runs for messages of number `id`, 0 to 63. */
HIROBA_API int hiroba_net_handler(hiroba_net* net, uint32_t id, hiroba_handler handler,
                                  void* context);
/* Collective: opens the ways to all ranks. */
HIROBA_API int hiroba_net_connect(hiroba_net* net);
/* Collective: waits until every rank has called it. NULL: nothing. */
HIROBA_API void hiroba_net_close(hiroba_net* net);

HIROBA_API uint32_t hiroba_net_rank(const hiroba_net* net);
HIROBA_API uint32_t hiroba_net_ranks(const hiroba_net* net);
HIROBA_API const char* hiroba_net_provider(const hiroba_net* net);
/* This rank's part of the memory; NULL before connect, or if there is no such memory. */
HIROBA_API void* hiroba_net_local(const hiroba_net* net, hiroba_memory memory);
/* Another rank's part, for loads and stores; NULL where it is not mapped (other hosts, udp). */
HIROBA_API void* hiroba_net_mapped(const hiroba_net* net, hiroba_memory memory, uint32_t rank);

/* Memory that one rank exposes after connect: a plain value, for those who are to reach it. */
struct hiroba_exposed {
    uint32_t rank;
    uint32_t kind;   /* the library's own */
    uint64_t number; /* the library's own */
    uint64_t bytes;
};
/* Exposes memory of this rank alone. `own`: the program's, of any alignment, until withdrawn; what
   others ask for is copied by this rank's handlers. NULL: new memory, zeroed. */
HIROBA_API int hiroba_net_expose(hiroba_net* net, void* own, size_t bytes,
                                 struct hiroba_exposed* exposed);
/* By the rank that exposed, when nobody uses it any more: a later access to own memory ends the job
   with a line. */
HIROBA_API int hiroba_net_withdraw(hiroba_net* net, const struct hiroba_exposed* exposed);
/* A number of this rank for what a rank, `exposed->rank`, has exposed. Asks nobody. */
HIROBA_API int hiroba_net_attach(hiroba_net* net, const struct hiroba_exposed* exposed,
                                 hiroba_memory* memory);
/* The number names nothing from now on. */
HIROBA_API void hiroba_net_detach(hiroba_net* net, hiroba_memory memory);

/* Blocking copies between `rank`'s memory from `offset` on and any memory of this process. put
   returns when the bytes are visible at the target. */
HIROBA_API int hiroba_net_get(hiroba_net* net, uint32_t rank, hiroba_memory memory, uint64_t offset,
                              void* to, size_t bytes);
HIROBA_API int hiroba_net_put(hiroba_net* net, uint32_t rank, hiroba_memory memory, uint64_t offset,
                              const void* from, size_t bytes);
/* A put, then an atomic on the 8 bytes at `signal`, a multiple of 8, of the same memory: who sees
   the signal sees the bytes. `operation`: HIROBA_SWAP stores `value`, HIROBA_ADD adds it. Blocking:
   returns when the signal is there. */
HIROBA_API int hiroba_net_put_signal(hiroba_net* net, uint32_t rank, hiroba_memory memory,
                                     uint64_t offset, const void* from, size_t bytes,
                                     uint64_t signal, int operation, uint64_t value);
/* Waits until this rank's own 8 bytes at `offset` compare so with `value`, as signed numbers.
   `found`, or NULL: the value seen. HIROBA_BUSY: `timeout_ns` nanoseconds have passed first;
   UINT64_MAX: no limit. */
HIROBA_API int hiroba_net_wait_word(hiroba_net* net, hiroba_memory memory, uint64_t offset,
                                    int comparison, int64_t value, uint64_t timeout_ns,
                                    int64_t* found);

/* Sequentially consistent, on aligned words, atomic against each other from every rank. `old`, or
   NULL: the value before. `expected`: of HIROBA_COMPARE_SWAP alone, which has happened if *old is
   `expected`. */
HIROBA_API int hiroba_net_atomic64(hiroba_net* net, uint32_t rank, hiroba_memory memory,
                                   uint64_t offset, int operation, uint64_t operand,
                                   uint64_t expected, uint64_t* old);
HIROBA_API int hiroba_net_atomic32(hiroba_net* net, uint32_t rank, hiroba_memory memory,
                                   uint64_t offset, int operation, uint32_t operand,
                                   uint32_t expected, uint32_t* old);
/* Puts `wanted` to the 16 bytes at `offset`, a multiple of 16, where `expected` is; all three are
   two words, that of the lower address first. `found`: what was there. Refused where the processor
   has no such instruction. */
HIROBA_API int hiroba_net_compare_swap128(hiroba_net* net, uint32_t rank, hiroba_memory memory,
                                          uint64_t offset, const uint64_t* expected,
                                          const uint64_t* wanted, uint64_t* found);
HIROBA_API int hiroba_net_atomic_double(hiroba_net* net, uint32_t rank, hiroba_memory memory,
                                        uint64_t offset, int operation, double operand,
                                        double* old);
HIROBA_API int hiroba_net_atomic_float(hiroba_net* net, uint32_t rank, hiroba_memory memory,
                                       uint64_t offset, int operation, float operand, float* old);

/* Starts a copy and returns; local memory is borrowed until hiroba_net_wait(). Puts and gets that
   are started together have no order. */
HIROBA_API int hiroba_net_start_get(hiroba_net* net, uint32_t rank, hiroba_memory memory,
                                    uint64_t offset, void* to, size_t bytes,
                                    hiroba_pending* pending);
HIROBA_API int hiroba_net_start_put(hiroba_net* net, uint32_t rank, hiroba_memory memory,
                                    uint64_t offset, const void* from, size_t bytes,
                                    hiroba_pending* pending);
HIROBA_API hiroba_pending* hiroba_pending_create(void);
/* After hiroba_net_wait() of what was started with it, else the process ends with a line. */
HIROBA_API void hiroba_pending_destroy(hiroba_pending* pending);
/* Waits for all that was started with it; it may then be used again. */
HIROBA_API int hiroba_net_wait(hiroba_net* net, hiroba_pending* pending);

/* Sends a message with up to 6 arguments and up to some 64 KiB of payload; returns when it has
   left. Messages have no order. */
HIROBA_API int hiroba_net_send(hiroba_net* net, uint32_t rank, uint32_t id,
                               const uint64_t* arguments, size_t count, const void* payload,
                               size_t bytes);
/* Lets this rank's communication go on once: for loops of the program that wait. */
HIROBA_API void hiroba_net_pause(hiroba_net* net);
/* Wakes who waits in hiroba_net_wait_word() at `rank`: after a plain store to mapped memory. */
HIROBA_API int hiroba_net_wake(hiroba_net* net, uint32_t rank);

/* Collectives: the same calls in the same order on every rank, one thread of each; sizes are equal
   on all. Other calls end the job with a line. */
HIROBA_API void hiroba_net_barrier(hiroba_net* net);
HIROBA_API void hiroba_net_broadcast(hiroba_net* net, uint32_t root, void* data, size_t bytes);
/* `all`: ranks * bytes bytes, in rank order. */
HIROBA_API void hiroba_net_all_gather(hiroba_net* net, const void* mine, size_t bytes, void* all);
/* Piece r of `out`, ranks * bytes bytes, becomes this rank's piece of `in` of rank r. */
HIROBA_API void hiroba_net_all_to_all(hiroba_net* net, const void* out, void* in, size_t bytes);
/* Combines `count` values of each rank in rank order, the same bits on all. `type`: hiroba_type;
   `operation`: HIROBA_ADD, HIROBA_MIN or HIROBA_MAX. */
HIROBA_API int hiroba_net_all_reduce(hiroba_net* net, void* values, size_t count, int type,
                                     int operation);

/* Teams: some ranks in an order of their own, with collectives of their own: the same calls in the
   same order on every member. Members have numbers from 0 in each team. */
typedef struct hiroba_team hiroba_team;
/* The team of all ranks; as many calls on every rank. */
HIROBA_API int hiroba_net_team(hiroba_net* net, hiroba_team** team);
/* Collective of `team`: members of one `color` become a team, ordered by `key`, then by their
   numbers in `team`. Color UINT32_MAX: none, and *part is NULL. */
HIROBA_API int hiroba_team_split(hiroba_team* team, uint32_t color, uint32_t key,
                                 hiroba_team** part);
/* Before the network is closed, with no collective under way. NULL: nothing. */
HIROBA_API void hiroba_team_free(hiroba_team* team);
HIROBA_API uint32_t hiroba_team_member(const hiroba_team* team); /* this rank's number */
HIROBA_API uint32_t hiroba_team_members(const hiroba_team* team);
/* The rank of a member. */
HIROBA_API uint32_t hiroba_team_rank(const hiroba_team* team, uint32_t member);
/* With `pending` they start the collective, whose memory is borrowed until hiroba_net_wait(), and
   any number may be under way at once; with NULL they wait. `root` is a member's number. */
HIROBA_API int hiroba_team_barrier(hiroba_team* team, hiroba_pending* pending);
HIROBA_API int hiroba_team_broadcast(hiroba_team* team, uint32_t root, void* data, size_t bytes,
                                     hiroba_pending* pending);
/* `all`: members * bytes bytes at the root. */
HIROBA_API int hiroba_team_gather(hiroba_team* team, uint32_t root, const void* mine, size_t bytes,
                                  void* all, hiroba_pending* pending);
HIROBA_API int hiroba_team_all_gather(hiroba_team* team, const void* mine, size_t bytes, void* all,
                                      hiroba_pending* pending);
HIROBA_API int hiroba_team_all_to_all(hiroba_team* team, const void* out, void* in, size_t bytes,
                                      hiroba_pending* pending);
/* As hiroba_net_all_reduce(), combined in brackets that depend on the number of members alone.
   reduce: the result is at the root, elsewhere `values` are undefined. */
HIROBA_API int hiroba_team_reduce(hiroba_team* team, uint32_t root, void* values, size_t count,
                                  int type, int operation, hiroba_pending* pending);
HIROBA_API int hiroba_team_all_reduce(hiroba_team* team, void* values, size_t count, int type,
                                      int operation, hiroba_pending* pending);

/* Runs for calls of its number, in a handler: it must not wait. @return the bytes it has written to
   `result`, which has room for 4096. */
typedef size_t (*hiroba_procedure)(void* context, uint32_t from, const void* arguments,
                                   size_t bytes, void* result);
/* Before connect: what runs for procedure `id`, 0 to 255, here. */
HIROBA_API int hiroba_net_procedure(hiroba_net* net, uint32_t id, hiroba_procedure procedure,
                                    void* context);
/* Calls procedure `id` of `rank` with up to 60,000 bytes of arguments; `result` gets `result_bytes`
   bytes: a procedure that returns another number ends the job. With `pending` it starts the call,
   and `result` is borrowed until hiroba_net_wait(); with NULL it waits. */
HIROBA_API int hiroba_net_call(hiroba_net* net, uint32_t rank, uint32_t id, const void* arguments,
                               size_t bytes, void* result, size_t result_bytes,
                               hiroba_pending* pending);

/* --- gas: global memory whose pages move to the rank that works on them --------------------------
 */

typedef struct hiroba_gas hiroba_gas;
/* A byte in global memory, the same number on every rank; 0: none. Bytes of one allocation follow
   each other. */
typedef uint64_t hiroba_place;
typedef struct hiroba_gas_pending hiroba_gas_pending;
typedef struct hiroba_view hiroba_view;

enum hiroba_kind {
    HIROBA_BLOCK = 0,  /* equal shares of whole pages in rank order */
    HIROBA_CYCLIC = 1, /* blocks of `block_bytes`, whole pages, in turn; 0: a page */
    HIROBA_ON_RANK = 2 /* all on `rank` */
};
/* Where pages are at first. {0}: by block, may move. */
struct hiroba_distribution {
    int32_t kind;
    uint32_t rank;
    uint64_t block_bytes;
    int32_t fixed; /* not 0: pages may not move */
    int32_t zero;  /* 0 */
};

/* Joins the job; collective. */
HIROBA_API int hiroba_gas_open(hiroba_gas** gas);
/* Leaves the job; collective. NULL: nothing. */
HIROBA_API void hiroba_gas_close(hiroba_gas* gas);
HIROBA_API uint32_t hiroba_gas_rank(const hiroba_gas* gas);
HIROBA_API uint32_t hiroba_gas_ranks(const hiroba_gas* gas);
HIROBA_API uint64_t hiroba_gas_page_bytes(const hiroba_gas* gas);
HIROBA_API void hiroba_gas_barrier(hiroba_gas* gas);
/* Collective: rank `from`'s value on all. */
HIROBA_API uint64_t hiroba_gas_broadcast(hiroba_gas* gas, uint64_t value, uint32_t from);

/* Zeroed memory that begins with a page, by this rank alone. `where` may be NULL: {0}. */
HIROBA_API int hiroba_gas_allocate(hiroba_gas* gas, uint64_t bytes,
                                   const struct hiroba_distribution* where, hiroba_place* place);
/* The same call on every rank; all get the same place, or none does. */
HIROBA_API int hiroba_gas_allocate_together(hiroba_gas* gas, uint64_t bytes,
                                            const struct hiroba_distribution* where,
                                            hiroba_place* place);
/* By the rank that allocated; together if that was together. */
HIROBA_API int hiroba_gas_free(hiroba_gas* gas, hiroba_place place);
/* The bytes of an allocation that `rank` has at first: `count` from `first` on. Of HIROBA_CYCLIC
   its first block. Calculates, asks no rank. */
HIROBA_API int hiroba_gas_share(hiroba_gas* gas, uint32_t rank, uint64_t bytes,
                                const struct hiroba_distribution* where, uint64_t* first,
                                uint64_t* count);

HIROBA_API int hiroba_gas_get(hiroba_gas* gas, hiroba_place from, void* to, size_t bytes);
HIROBA_API int hiroba_gas_put(hiroba_gas* gas, hiroba_place to, const void* from, size_t bytes);
/* `count` pieces of `bytes` bytes, `stride` bytes of any sign apart in global memory, one after the
   other in local memory. */
HIROBA_API int hiroba_gas_get_strided(hiroba_gas* gas, hiroba_place from, int64_t stride,
                                      size_t bytes, size_t count, void* to);
HIROBA_API int hiroba_gas_put_strided(hiroba_gas* gas, hiroba_place to, int64_t stride,
                                      size_t bytes, size_t count, const void* from);
/* Pieces of `bytes` bytes at `count` places, one after the other in local memory. */
HIROBA_API int hiroba_gas_get_list(hiroba_gas* gas, const hiroba_place* from, size_t bytes,
                                   size_t count, void* to);
HIROBA_API int hiroba_gas_put_list(hiroba_gas* gas, const hiroba_place* to, size_t bytes,
                                   size_t count, const void* from);
/* Starts a copy; local memory is borrowed until hiroba_gas_wait(). */
HIROBA_API int hiroba_gas_start_get(hiroba_gas* gas, hiroba_place from, void* to, size_t bytes,
                                    hiroba_gas_pending* pending);
HIROBA_API int hiroba_gas_start_put(hiroba_gas* gas, hiroba_place to, const void* from,
                                    size_t bytes, hiroba_gas_pending* pending);
HIROBA_API hiroba_gas_pending* hiroba_gas_pending_create(void);
HIROBA_API void hiroba_gas_pending_destroy(hiroba_gas_pending* pending);
HIROBA_API int hiroba_gas_wait(hiroba_gas* gas, hiroba_gas_pending* pending);
/* As hiroba_net_atomic64(); HIROBA_ADD to HIROBA_COMPARE_SWAP. */
HIROBA_API int hiroba_gas_atomic64(hiroba_gas* gas, hiroba_place at, int operation,
                                   uint64_t operand, uint64_t expected, uint64_t* old);
HIROBA_API int hiroba_gas_atomic32(hiroba_gas* gas, hiroba_place at, int operation,
                                   uint32_t operand, uint32_t expected, uint32_t* old);
/* Moves the pages of the range to this rank. */
HIROBA_API int hiroba_gas_own(hiroba_gas* gas, hiroba_place first, uint64_t bytes);
/* The range for loads and stores, if this rank owns all of it; else HIROBA_BUSY. Other ranks' puts
   and own wait until the view is closed, so do not wait for another rank meanwhile. */
HIROBA_API int hiroba_gas_view_open(hiroba_gas* gas, hiroba_place first, uint64_t bytes,
                                    hiroba_view** view, void** memory);
HIROBA_API void hiroba_gas_view_close(hiroba_view* view);

/* --- dsm: shared memory at the same addresses on every rank, by loads and stores ----------------
   What a rank wrote before a release (barrier, unlock, flush) others see behind the acquire
   (barrier, lock, flush) that follows it. Wrong use ends the job with a line. */

typedef struct hiroba_dsm hiroba_dsm;

/* Joins the job; collective; once in a process. */
HIROBA_API int hiroba_dsm_open(hiroba_dsm** dsm);
/* Leaves the job; collective. NULL: nothing. */
HIROBA_API void hiroba_dsm_close(hiroba_dsm* dsm);
HIROBA_API uint32_t hiroba_dsm_rank(const hiroba_dsm* dsm);
HIROBA_API uint32_t hiroba_dsm_ranks(const hiroba_dsm* dsm);
/* Zeroed memory, by this rank alone. `alignment`: a power of two, 0: 64. */
HIROBA_API int hiroba_dsm_allocate(hiroba_dsm* dsm, size_t bytes, size_t alignment, void** memory);
/* Collective: rank 0 allocates, all get the pointer, or none. `bytes` is rank 0's. */
HIROBA_API int hiroba_dsm_allocate_together(hiroba_dsm* dsm, size_t bytes, void** memory);
/* Any rank, once, when no rank uses it any more. NULL: nothing. */
HIROBA_API void hiroba_dsm_free(hiroba_dsm* dsm, void* memory);
/* Collective: a release and an acquire of all ranks. */
HIROBA_API void hiroba_dsm_barrier(hiroba_dsm* dsm);
/* Barriers that bring rank `from`'s value to all; every rank's value to `all`, in rank order. */
HIROBA_API uint64_t hiroba_dsm_broadcast(hiroba_dsm* dsm, uint64_t value, uint32_t from);
HIROBA_API void hiroba_dsm_all_gather(hiroba_dsm* dsm, uint64_t value, uint64_t* all);
/* A release and an acquire by this rank alone, totally ordered with all others of the job. */
HIROBA_API void hiroba_dsm_flush(hiroba_dsm* dsm);
/* The lock of number `key`: lock acquires, unlock releases. Not recursive; a thread of the rank
   that locked unlocks. */
HIROBA_API void hiroba_dsm_lock(hiroba_dsm* dsm, uint64_t key);
HIROBA_API void hiroba_dsm_unlock(hiroba_dsm* dsm, uint64_t key);
/* HIROBA_BUSY: a thread of the job holds it. */
HIROBA_API int hiroba_dsm_try_lock(hiroba_dsm* dsm, uint64_t key);
/* On 8 aligned bytes of shared memory: HIROBA_ADD to HIROBA_COMPARE_SWAP. Orders nothing else.
   `old`, or NULL: the value before. */
HIROBA_API int hiroba_dsm_atomic64(hiroba_dsm* dsm, uint64_t* word, int operation, uint64_t operand,
                                   uint64_t expected, uint64_t* old);

#ifdef __cplusplus
}
#endif

#endif
