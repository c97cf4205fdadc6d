/* SPDX-License-Identifier: BSD-3-Clause
   A program of MPI and OpenMP: each rank's threads fill and sum an array, the ranks add up. Prints
   a line a rank: how many processes its threads ran in, and a sum that the script knows. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { count = 100000, threads_max = 64, steps = 5 };
static double values[count];
static int processes[threads_max];

/* The kernel's number: getpid() is one on all nodes. */
static int process(void) {
    char text[32] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 ? atoi(text) : -1;
}

static int distinct(int threads) {
    int found = 0;
    for (int i = 0; i < threads; ++i) {
        int known = 0;
        for (int j = 0; j < i; ++j) known |= processes[i] == processes[j];
        found += !known;
    }
    return found;
}

int main(int argc, char** argv) {
    int given, rank, ranks, threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double own = 0, all = 0;
    for (int step = 0; step < steps; ++step) {
        own = 0;
#pragma omp parallel reduction(+ : own)
        {
            processes[omp_get_thread_num()] = process();
#pragma omp single
            threads = omp_get_num_threads();
#pragma omp for
            for (int i = 0; i < count; ++i) values[i] += (i + rank) % 7;
#pragma omp for
            for (int i = 0; i < count; ++i) own += values[i];
        }
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("rank %d of %d: %d threads in %d processes, sum %.0f\n", rank, ranks, threads,
           distinct(threads), all);
    MPI_Finalize();
    return 0;
}
