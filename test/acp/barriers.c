/* SPDX-License-Identifier: BSD-3-Clause
   Role: many acp_sync in a row, now and then with a late rank: what all ranks did before one, each
   sees behind it, and nobody is ahead by more than one.
   Usage: acp_barriers ROUNDS [RANK], which is killed in the middle, before it comes to one. */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "check.h"

/* Long enough for the others to fall asleep. */
static void be_late(void) {
    const struct timespec pause = {0, 3000000};
    nanosleep(&pause, NULL);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const uint64_t rounds = strtoull(argv[1], NULL, 10);
    const int victim = argc > 2 ? atoi(argv[2]) : -1;
    if (acp_init(&argc, &argv) != 0) return 1;
    const int rank = acp_rank(), ranks = acp_procs();
    CHECK(8 * (uint64_t)(ranks + 1) <= 1024, "too many ranks for the starter memory");
    uint64_t* const starter = (uint64_t*)acp_query_address(acp_query_starter_ga(rank));
    /* The last word is this rank's own, what it writes elsewhere is a copy of it. */
    const acp_ga_t own = acp_query_starter_ga(rank) + 8 * (uint64_t)ranks;
    for (uint64_t round = 1; round <= rounds; ++round) {
        if (rank == victim && round == rounds / 2) raise(SIGKILL);
        if (mixed(round * 64 + (uint64_t)rank) % 97 == 0) be_late();
        starter[ranks] = round;
        for (int to = 0; to < ranks; ++to)
            acp_copy(acp_query_starter_ga(to) + 8 * (uint64_t)rank, own, 8, ACP_HANDLE_NULL);
        acp_complete(ACP_HANDLE_ALL);
        acp_sync();
        for (int from = 0; from < ranks; ++from) {
            const uint64_t seen = __atomic_load_n(&starter[from], __ATOMIC_ACQUIRE);
            CHECK(seen == round || seen == round + 1, "rank %d is in round %lu, this one in %lu",
                  from, (unsigned long)seen, (unsigned long)round);
        }
    }
    acp_sync();
    if (rank == 0) printf("%lu barriers of %d ranks: held\n", (unsigned long)rounds, ranks);
    return acp_finalize();
}
