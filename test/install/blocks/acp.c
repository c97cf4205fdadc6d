/* SPDX-License-Identifier: BSD-3-Clause
   Role: the further block of docs/tutorials/acp.md, line by line, in a program whose answer is
   checked: the flag comes behind the data. */
#include <acp.h>
#include <sched.h>
#include <stdio.h>

enum { bytes = 8000, rounds = 50 };

int main(int argc, char** argv) {
    if (acp_init(&argc, &argv) != 0) return 78;
    const int rank = acp_rank(), next = (rank + 1) % acp_procs();
    /* Starter memory: what comes, its flag, what goes, its flag. */
    uint64_t* const mine = acp_query_address(acp_query_starter_ga(rank));
    const acp_ga_t there = acp_query_starter_ga(next), here = acp_query_starter_ga(rank) + 16384;
    const acp_ga_t data_there = there, flag_there = there + bytes;
    const acp_ga_t data_here = here, flag_here = here + bytes;
    const int words = bytes / 8;
    int wrong = 0;
    for (uint64_t round = 1; round <= rounds; ++round) {
        for (int i = 0; i <= words; ++i) mine[2048 + i] = round;
        // clang-format off
acp_copy(data_there, data_here, bytes, ACP_HANDLE_NULL);       /* at once */
acp_copy(flag_there, flag_here, 8, (acp_handle_t)ACP_HANDLE_CONT);   /* behind the one before, without waiting in between */
        // clang-format on
        while (__atomic_load_n(&mine[words], __ATOMIC_ACQUIRE) != round) sched_yield();
        for (int i = 0; i < words; ++i) wrong += mine[i] != round;
        acp_complete((acp_handle_t)ACP_HANDLE_ALL);
        acp_sync();
    }
    puts(wrong == 0 ? "right" : "WRONG");
    return acp_finalize();
}
