/* SPDX-License-Identifier: BSD-3-Clause
   Role: what an MPI library takes for what tests of `hiroba perf` do; see --beside there. Ranks 0
   and 1 are the pair, all take part in collectives. Prints {"ns":N}, the median over batches.
   Usage: mpirun -n 2 hiroba-perf-mpi TEST BYTES MILLISECONDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { batches_max = 4000, together = 64, area_bytes = 16 << 20 };

struct run {
    int rank, ranks, bytes;
    MPI_Win window;
    char *area, *local;
};

/* One batch; the operations of one-sided tests are rank 0's alone. */
typedef void (*batch)(struct run* run, long count);

static MPI_Aint place(const struct run* run, long i) {
    const long places = area_bytes / run->bytes;
    return (MPI_Aint)(i % (places < together ? places : together)) * run->bytes;
}
static void put(struct run* run, long count) {
    for (long i = 0; i < count; ++i) {
        MPI_Put(run->local, run->bytes, MPI_BYTE, 1, 0, run->bytes, MPI_BYTE, run->window);
        MPI_Win_flush(1, run->window);
    }
}
static void get(struct run* run, long count) {
    for (long i = 0; i < count; ++i) {
        MPI_Get(run->local, run->bytes, MPI_BYTE, 1, 0, run->bytes, MPI_BYTE, run->window);
        MPI_Win_flush(1, run->window);
    }
}
static void puts_(struct run* run, long count) {
    for (long i = 0; i < count; ++i) {
        MPI_Put(run->local + place(run, i), run->bytes, MPI_BYTE, 1, place(run, i), run->bytes,
                MPI_BYTE, run->window);
        if (i % together == together - 1) MPI_Win_flush(1, run->window);
    }
    MPI_Win_flush(1, run->window);
}
static void gets_(struct run* run, long count) {
    for (long i = 0; i < count; ++i) {
        MPI_Get(run->local + place(run, i), run->bytes, MPI_BYTE, 1, place(run, i), run->bytes,
                MPI_BYTE, run->window);
        if (i % together == together - 1) MPI_Win_flush(1, run->window);
    }
    MPI_Win_flush(1, run->window);
}
static void fetch_and_op(struct run* run, long count) {
    const long one = 1;
    for (long i = 0; i < count; ++i) {
        MPI_Fetch_and_op(&one, run->local, MPI_LONG, 1, 0, MPI_SUM, run->window);
        MPI_Win_flush(1, run->window);
    }
}
static void send_recv(struct run* run, long count) {
    for (long i = 0; i < count; ++i) {
        if (run->rank == 0) MPI_Send(run->local, run->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(run->local, run->bytes, MPI_BYTE, 1 - run->rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (run->rank == 1) MPI_Send(run->local, run->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}
/* There and back: the other rank polls its memory, as in put_latency. */
static void put_seen(struct run* run, long count) {
    static long number;
    volatile long* const mine = (volatile long*)run->area;
    for (long i = 0; i < count; ++i) {
        ++number;
        for (int turn = 0; turn < 2; ++turn) {
            if (turn == run->rank) {
                memcpy(run->local, &number, sizeof number);
                MPI_Put(run->local, 8, MPI_BYTE, 1 - run->rank, 0, 8, MPI_BYTE, run->window);
                MPI_Win_flush(1 - run->rank, run->window);
                continue;
            }
            while (*mine != number) {
                int any = 0; /* where the library moves only inside its calls */
                MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
                MPI_Win_sync(run->window);
            }
        }
    }
}
static void barrier(struct run* run, long count) {
    (void)run;
    for (long i = 0; i < count; ++i) MPI_Barrier(MPI_COMM_WORLD);
}
static void allreduce(struct run* run, long count) {
    for (long i = 0; i < count; ++i)
        MPI_Allreduce(MPI_IN_PLACE, run->local, run->bytes / 8, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
}
static void allgather(struct run* run, long count) {
    for (long i = 0; i < count; ++i)
        MPI_Allgather(run->local, run->bytes, MPI_BYTE, run->area, run->bytes, MPI_BYTE,
                      MPI_COMM_WORLD);
}

static const struct test {
    const char* name;
    batch work;
    int is_of_pair; /* rank 0 asks alone, the others wait inside MPI_Barrier */
} tests[] = {{"put", put, 1},
             {"get", get, 1},
             {"puts", puts_, 1},
             {"gets", gets_, 1},
             {"fetch_and_op", fetch_and_op, 1},
             {"send_recv", send_recv, 0},
             {"put_seen", put_seen, 0},
             {"barrier", barrier, 0},
             {"allreduce", allreduce, 0},
             {"allgather", allgather, 0}};

static double timed(struct run* run, const struct test* test, long count) {
    const int is_pair = test->work == send_recv || test->work == put_seen;
    const int works = test->is_of_pair ? run->rank == 0 : !is_pair || run->rank < 2;
    memset(run->local, 0, (size_t)run->bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = MPI_Wtime();
    if (works) test->work(run, count);
    const double spent = MPI_Wtime() - begun;
    MPI_Barrier(MPI_COMM_WORLD);
    return spent / (double)count * 1e9;
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void measure(struct run* run, const struct test* test, double seconds) {
    static double samples[batches_max];
    long count = together / 2;
    double once = 0;
    /* As long as hiroba's batches; rank 0's clock decides for all. */
    do {
        count *= 2;
        once = timed(run, test, count);
        MPI_Bcast(&once, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    } while (once * (double)count < 40e3 && count < 1 << 20);
    long batches = (long)(seconds * 1e9 / (once * (double)count)) + 5;
    if (batches > batches_max) batches = batches_max;
    MPI_Bcast(&batches, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    for (long i = 0; i < batches; ++i) samples[i] = timed(run, test, count);
    if (run->rank != 0) return;
    qsort(samples, (size_t)batches, sizeof samples[0], by_value);
    printf("{\"ns\":%.2f}\n", samples[batches / 2]);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    struct run run = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    const struct test* test = NULL;
    for (size_t i = 0; argc == 4 && i < sizeof tests / sizeof tests[0]; ++i) {
        if (strcmp(argv[1], tests[i].name) == 0) test = &tests[i];
    }
    run.bytes = argc == 4 ? atoi(argv[2]) : 0;
    if (test == NULL || run.ranks < 2 || run.bytes < 8 || run.bytes % 8 != 0 ||
        run.bytes > area_bytes / run.ranks) {
        if (run.rank == 0)
            fprintf(stderr, "usage: mpirun -n 2 hiroba-perf-mpi TEST BYTES MILLISECONDS\n");
        MPI_Finalize();
        return 64;
    }
    run.local = calloc(1, area_bytes);
    MPI_Win_allocate(area_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &run.area, &run.window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, run.window);
    measure(&run, test, atof(argv[3]) / 1000);
    MPI_Win_unlock_all(run.window);
    MPI_Win_free(&run.window);
    free(run.local);
    MPI_Finalize();
    return 0;
}
