/* SPDX-License-Identifier: BSD-3-Clause
   A program of MPI that uses libacp: ranks copy to their neighbours by ACP and add up by MPI. The
   word `late`: ACP first, then MPI. `one_leaves`, `one_dies`: what rank 1 does in place of meeting
   the others. */
#include <acp.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int is(int argc, char** argv, const char* word) {
    return argc > 1 && strcmp(argv[1], word) == 0;
}

int main(int argc, char** argv) {
    const int late = is(argc, argv, "late");
    int mpi_rank, mpi_ranks;
    if (!late) MPI_Init(&argc, &argv);
    if (acp_init(&argc, &argv) != 0) return 1;
    if (late) MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_ranks);
    const int rank = acp_rank(), ranks = acp_procs();
    if (rank == 1 && is(argc, argv, "one_leaves")) return 0;
    if (rank == 1 && is(argc, argv, "one_dies")) raise(SIGKILL);

    const acp_ga_t mine = acp_query_starter_ga(rank);
    const acp_ga_t next = acp_query_starter_ga((rank + 1) % ranks);
    volatile long* const words = acp_query_address(mine);
    words[0] = 100 + rank;
    acp_sync();
    acp_complete(acp_copy(next + sizeof(long), mine, sizeof(long), ACP_HANDLE_NULL));
    acp_sync();
    long got = words[1], sum = 0;
    MPI_Allreduce(&got, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    printf("MPI %d of %d, ACP %d of %d, got %ld, sum %ld\n", mpi_rank, mpi_ranks, rank, ranks, got,
           sum);
    fflush(stdout);
    if (late) MPI_Finalize();
    if (acp_finalize() != 0) return 1;
    if (!late) MPI_Finalize();
    return 0;
}
