/* SPDX-License-Identifier: BSD-3-Clause
   Role: ACP (Advanced Communication Primitives), basic layer: global memory, one-sided copies and
   atomics between any two ranks, handles that order them. For C11 and C++.
   Source: Saga et al., implementation of the ACP basic layer; semantics where it is silent:
   docs/layers/acp.md. First page: docs/tutorials/acp.md. Start programs with
   `hiroba run -n N ./program`, or with mpirun or srun; alone they are one rank.

   Functions that fail say why in one line on stderr and set errno: EINVAL (an argument), EPERM
   (before acp_init or after acp_finalize), EIO (the machine), ECONNRESET (the job). The caller's
   own memory and starter memory are checked at the call. Memory that another rank has registered is
   checked there: an access that leaves it, or that comes after it was unregistered, ends the job
   with status 1 and a line that names both ranks and the offset. A lost rank ends the job, too.

   Any thread may call any function; acp_init, acp_finalize and acp_reset are collective, called by
   one thread while no other is inside the library. */
#ifndef HIROBA_ACP_H
#define HIROBA_ACP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Infrastructure ------------------------------------------------------------------------- */

/** Joins the job; returns when every rank has. Neither argument is changed; both may be null. A
    process that no launcher started is a job of one rank; processes of mpirun or srun that cannot
    join end with status 78. @return 0, or -1 */
int acp_init(int* argc, char*** argv);
/** Completes this rank's accesses and leaves; returns when every rank has called it. Registrations
    and global addresses are gone. acp_init may follow. A process that exits with status 0 without
    it ends the job. @return 0, or -1 */
int acp_finalize(void);
/** acp_finalize and acp_init in one, with `rank` as this process's new number: registrations are
    gone, starter memory is zero. Fails everywhere, and changes nothing, unless the new ranks are a
    permutation. @return 0, or -1 */
int acp_reset(int rank);
/** Prints the rank, `text` (may be null) and, if errno is not 0, its message; ends every rank, with
    status 1. Does not return. */
void acp_abort(const char* text);
/** Returns when every rank has called it. Completes no access: acp_complete(ACP_HANDLE_ALL) before
    it does. @return 0, or -1 */
int acp_sync(void);
/** @return this process's number, 0 to acp_procs() - 1; -1 on failure */
int acp_rank(void);
/** @return how many ranks there are; -1 on failure */
int acp_procs(void);

/* --- Global memory -------------------------------------------------------------------------- */

#define ACP_ATKEY_NULL 0LLU
#define ACP_GA_NULL 0LLU

/** Names one registration. */
typedef uint64_t acp_atkey_t;
/** Names a byte of some rank. Adding to it moves within the memory registered. The same on every
    rank, so ranks tell each other by copies of 8 bytes; valid until the registration ends. An
    address is as aligned as the byte it names. */
typedef uint64_t acp_ga_t;

/** The starter memory of `rank`: at least 1024 zeroed bytes (HIROBA_ACP_STARTER), the same size on
    every rank, always registered. @return its first byte; ACP_GA_NULL on failure */
acp_ga_t acp_query_starter_ga(int rank);
/** Lets every rank access `size` >= 1 bytes from `addr`. The same memory with the same color again
    is counted and keeps its key. The memory stays mapped until it is unregistered (EINVAL if its
    first or last page is not mapped now); it is writable if it is ever a destination or the source
    of an atomic, else such an access crashes this process. @param color  0 to acp_colors() - 1
    @return ACP_ATKEY_NULL on failure */
acp_atkey_t acp_register_memory(void* addr, size_t size, int color);
/** Takes one registration back; with the last one, waits for this rank's accesses to the memory,
    and for those that are being carried out here. An access by another rank that comes later ends
    the job: let the ranks meet before. @return 0, or -1 */
int acp_unregister_memory(acp_atkey_t atkey);
/** The global address of `addr`, which lies in the memory of `atkey`, registered by this rank.
    @return ACP_GA_NULL on failure */
acp_ga_t acp_query_ga(acp_atkey_t atkey, void* addr);
/** Where a byte of this rank is, until it is unregistered.
    @return NULL (EINVAL) for other ranks' memory and what is not registered */
void* acp_query_address(acp_ga_t ga);
/** @return whose memory it is, as the address says; whether it is still registered is not asked. -1
    (EINVAL) where it names no rank of the job */
int acp_query_rank(acp_ga_t ga);
/** @return the color it was registered with; -1 on failure */
int acp_query_color(acp_ga_t ga);
/** @return how many colors (network interfaces) there are; -1 on failure */
int acp_colors(void);

/* --- Global memory access ------------------------------------------------------------------- */

/** Names an access, and all that this rank issued before it. Handles grow. */
typedef int64_t acp_handle_t;

/** As order: start at once, also past accesses that wait. As result: failure (handles are signed:
    compare with (acp_handle_t)ACP_HANDLE_NULL, or with 0). */
#define ACP_HANDLE_NULL 0x0000000000000000LLU
/** As order: after all accesses this rank has issued. To complete: all of them. */
#define ACP_HANDLE_ALL 0xffffffffffffffffLLU
/** As order: after the access this thread issued last; without waiting for its answer where both
    take the same way. To complete: all. */
#define ACP_HANDLE_CONT 0xfffffffffffffffeLLU

/** Copies `size` bytes; either end may be on any rank. Returns before it is complete: leave both
    ends alone until acp_complete. An order that is a handle: after that access and all before it. A
    handle that was never issued is nothing to wait for. Waits only while 4096 accesses are
    unfinished. The ends may not overlap (not checked). @return ACP_HANDLE_NULL on failure */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

/** Atomics of 4 and 8 bytes, both ends aligned: the word at `src` is changed, its old value is
    stored at `dst`, which may be on any rank. Atomic against each other and against the owner's
    CPU. EINVAL if either end is not aligned. @return ACP_HANDLE_NULL on failure @{ */
acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t oldval, uint32_t newval,
                      acp_handle_t order);
acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t oldval, uint64_t newval,
                      acp_handle_t order);
acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
/** @} */

/** Waits until the access and all before it are complete: their bytes are in memory at dst, and
    visible there to whoever sees a later one. Null, finished and unknown handles: returns. */
void acp_complete(acp_handle_t handle);
/** @return 1 while the access or one before it is incomplete, else 0, also for null, finished and
    unknown handles. Carries on the rank's communication. */
int acp_inquire(acp_handle_t handle);

#ifdef __cplusplus
}
#endif

/* --- Middle layer --------------------------------------------------------------------------- */

#include "acp_channels.h"
#include "acp_data.h"

#endif
