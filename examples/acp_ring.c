/* SPDX-License-Identifier: BSD-3-Clause
   A token goes round a ring of ranks by ACP: each rank puts a block of data into its right
   neighbour's memory and then a flag behind it, without waiting in between (ACP_HANDLE_CONT).

   cc acp_ring.c $(pkg-config --cflags --libs acp) -o acp_ring; hiroba run -n 4 ./acp_ring */
#include <acp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { words = 1024, rounds = 100 };

struct block {
    uint64_t data[words];
    uint64_t flag; /* number of the round whose data are complete */
};

/* The left neighbour stores it; nothing is ordered before it but what ACP has put there. */
static void wait_for(const uint64_t* flag, uint64_t round) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != round) sched_yield();
}

int main(int argc, char** argv) {
    if (acp_init(&argc, &argv) != 0) return 1;
    const int rank = acp_rank(), ranks = acp_procs(), right = (rank + 1) % ranks;

    /* One block comes in, one goes out; both can be named by every rank. */
    struct block* blocks = calloc(2, sizeof *blocks);
    struct block *in = &blocks[0], *out = &blocks[1];
    const acp_atkey_t key = acp_register_memory(blocks, 2 * sizeof *blocks, 0);
    const acp_ga_t out_ga = acp_query_ga(key, out);

    /* Starter memory is what ranks know of each other: the left neighbour finds our block there. */
    acp_ga_t* starter = acp_query_address(acp_query_starter_ga(rank));
    starter[0] = acp_query_ga(key, in);
    acp_sync();
    acp_complete(acp_copy(acp_query_starter_ga(rank) + sizeof(acp_ga_t),
                          acp_query_starter_ga(right), sizeof(acp_ga_t), ACP_HANDLE_NULL));
    const acp_ga_t in_of_right = starter[1];

    for (uint64_t round = 1; round <= rounds; ++round) {
        /* Rank 0 begins each round; the others pass on what they got, plus their rank. */
        if (rank != 0) wait_for(&in->flag, round);
        for (int i = 0; i < words; ++i) {
            out->data[i] = rank == 0 ? round * words + (uint64_t)i : in->data[i] + (uint64_t)rank;
        }
        out->flag = round;
        acp_copy(in_of_right, out_ga, sizeof in->data, ACP_HANDLE_NULL);
        const acp_handle_t flag = acp_copy(in_of_right + offsetof(struct block, flag),
                                           out_ga + offsetof(struct block, flag), sizeof in->flag,
                                           (acp_handle_t)ACP_HANDLE_CONT);
        if (rank == 0) {
            wait_for(&in->flag, round);
            const uint64_t added = (uint64_t)ranks * (uint64_t)(ranks - 1) / 2;
            for (int i = 0; i < words; ++i) {
                if (in->data[i] == round * words + (uint64_t)i + added) continue;
                acp_abort("the ring lost data");
            }
        }
        acp_complete(flag); /* `out` is free again */
    }
    acp_sync();
    acp_unregister_memory(key);
    free(blocks);
    if (rank == 0) printf("%d rounds of %d ranks: VERIFICATION SUCCESSFUL\n", rounds, ranks);
    return acp_finalize();
}
