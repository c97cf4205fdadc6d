/* SPDX-License-Identifier: BSD-3-Clause
   One-sided access from C. Each rank puts a piece of an array of doubles, with a signal, into its
   neighbour's memory, and all add up what came by an atomic on rank 0. Run: hiroba run --spmd -n 4
   build/examples/c_ring */
#include <stdio.h>
#include <stdlib.h>

#include "hiroba/hiroba.h"

enum {
    count = 1000,
    signal_at = 0,
    total_at = 8,
    first_at = 16
}; /* offsets in every rank's memory */

static void check(int code) {
    if (code == HIROBA_OK) return;
    fprintf(stderr, "%s: %s\n", hiroba_strerror(code), hiroba_last_error());
    exit(code == HIROBA_NO_JOB ? 78 : 1);
}

int main(void) {
    hiroba_net* net;
    hiroba_memory memory;
    check(hiroba_net_open(&net));
    check(hiroba_net_allocate(net, first_at + count * sizeof(double), &memory));
    check(hiroba_net_connect(net));
    const uint32_t rank = hiroba_net_rank(net), ranks = hiroba_net_ranks(net);

    double mine[count];
    for (int i = 0; i < count; ++i) mine[i] = rank + i / (double)count;
    check(hiroba_net_put_signal(net, (rank + 1) % ranks, memory, first_at, mine, sizeof mine,
                                signal_at, HIROBA_ADD, 1));
    check(hiroba_net_wait_word(net, memory, signal_at, HIROBA_EQUAL, 1, UINT64_MAX, NULL));

    const double* here = (const double*)((const char*)hiroba_net_local(net, memory) + first_at);
    double sum = 0, total = 0;
    for (int i = 0; i < count; ++i) sum += here[i];
    check(hiroba_net_atomic_double(net, 0, memory, total_at, HIROBA_ADD, sum, NULL));
    hiroba_net_barrier(net);

    check(hiroba_net_get(net, 0, memory, total_at, &total, sizeof total));
    const double right = count * (ranks * (ranks - 1) / 2.0) + ranks * ((count - 1) / 2.0);
    const int good = total > right - 1e-6 && total < right + 1e-6;
    if (rank == 0)
        printf("%u ranks, total %.1f: VERIFICATION %s\n", ranks, total,
               good ? "SUCCESSFUL" : "FAILED");
    fflush(stdout);
    hiroba_net_close(net);
    return good ? 0 : 1;
}
