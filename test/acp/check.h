/* SPDX-License-Identifier: BSD-3-Clause
   Role: what the ACP test programs share: a failed check names itself and ends the job. */
#ifndef HIROBA_TEST_ACP_CHECK_H
#define HIROBA_TEST_ACP_CHECK_H

#include <acp.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, ...)                                                                \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "rank %d, %s:%d: %s is false: ", acp_rank(), __FILE__, __LINE__, \
                    #condition);                                                             \
            fprintf(stderr, __VA_ARGS__);                                                    \
            fprintf(stderr, "\n");                                                           \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

/* A number that any rank computes alike; of 64 bits, all of which change with the seed. */
static inline uint64_t mixed(uint64_t seed) {
    seed += 0x9e3779b97f4a7c15u;
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return seed ^ seed >> 31;
}

/* Every rank learns `mine` of every other, through starter memory from `slot` (words). */
static inline void exchange(uint64_t mine, uint64_t* all, int slot) {
    const int rank = acp_rank(), ranks = acp_procs();
    uint64_t* starter = (uint64_t*)acp_query_address(acp_query_starter_ga(rank));
    starter[slot + rank] = mine;
    const acp_ga_t from = acp_query_starter_ga(rank) + 8 * (uint64_t)(slot + rank);
    for (int to = 0; to < ranks; ++to) {
        if (to == rank) continue;
        acp_copy(acp_query_starter_ga(to) + 8 * (uint64_t)(slot + rank), from, 8, ACP_HANDLE_NULL);
    }
    acp_complete(ACP_HANDLE_ALL);
    acp_sync();
    for (int from_rank = 0; from_rank < ranks; ++from_rank)
        all[from_rank] = starter[slot + from_rank];
    acp_sync();
}

#endif
