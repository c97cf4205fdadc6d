/* SPDX-License-Identifier: BSD-3-Clause
   One of two programs of one job, built twice. Each rank tells all which one it is and what it was
   called with; all check that the ranks of the first come first.
   Usage: joined_first COUNT : joined_second COUNT, COUNT the nodes of that program */
#include "check.h"

#ifdef SECOND
enum { mine = 2 };
#else
enum { mine = 1 };
#endif

int main(int argc, char** argv) {
    if (acp_init(&argc, &argv) != 0) return 1;
    CHECK(argc == 2, "called with %d words", argc);
    const uint64_t count = (uint64_t)atoi(argv[1]);
    uint64_t all[64];
    exchange((uint64_t)mine << 32 | count, all, 16);
    const int first = (int)(all[0] & 0xffffffff);
    for (int rank = 0; rank < acp_procs(); ++rank) {
        const int wanted = rank < first ? 1 : 2;
        const int nodes = wanted == 1 ? first : acp_procs() - first;
        CHECK(all[rank] == ((uint64_t)wanted << 32 | (uint64_t)nodes), "rank %d is 0x%lx", rank,
              (unsigned long)all[rank]);
    }
    if (acp_rank() == acp_procs() - 1)
        printf("%d ranks of program 2 behind %d of program 1\n", acp_procs() - first, first);
    return acp_finalize();
}
