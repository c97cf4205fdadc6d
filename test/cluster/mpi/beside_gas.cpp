// SPDX-License-Identifier: BSD-3-Clause
// A program of MPI whose ranks count in global memory (hiroba::gas) and compare by MPI.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <hiroba/gas.hpp>
#include <string>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    std::string why;
    const auto space = hiroba::gas::space::open(&why);
    if (!space) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 1;
    }
    int mpi_rank = 0, mpi_ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_ranks);
    long sum = 0;
    const long own = static_cast<long>(space->rank()) + 1;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    std::printf("MPI %d of %d, gas %u of %u, sum %ld\n", mpi_rank, mpi_ranks, space->rank(),
                space->ranks(), sum);
    std::fflush(stdout);
    MPI_Finalize();
}
