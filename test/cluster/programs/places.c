// SPDX-License-Identifier: BSD-3-Clause
// Places: each thread runs where it says, whatever the policy. How threads are dealt out depends on
// how many of a team are on a node, so only what holds for each of them is printed.
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>

/// Whether the calling thread may run on its place's processors and no others.
static int is_at_its_place(void) {
    const int place = omp_get_place_num();
    if (place < 0) return omp_get_num_places() == 0;
    int ids[CPU_SETSIZE];
    const int count = omp_get_place_num_procs(place);
    omp_get_place_proc_ids(place, ids);
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int allowed = 0;
    for (int i = 0; i < count; ++i) allowed += CPU_ISSET(ids[i], &set) != 0;
    return allowed == count && CPU_COUNT(&set) == count;
}

static int partition_has_place(void) {
    int places[CPU_SETSIZE];
    const int count = omp_get_partition_num_places();
    omp_get_partition_place_nums(places);
    for (int i = 0; i < count; ++i)
        if (places[i] == omp_get_place_num()) return 1;
    return omp_get_num_places() == 0;
}

int main(void) {
    printf("%d places, bind %d, initial thread at %d, %d of no place\n", omp_get_num_places(),
           omp_get_proc_bind(), omp_get_place_num(), omp_get_place_num_procs(-1));
    int at_place = 0, in_partition = 0, together = 0, inner = 0;
#pragma omp parallel reduction(+ : at_place, in_partition)
    at_place += is_at_its_place(), in_partition += partition_has_place();
#pragma omp parallel proc_bind(spread) reduction(+ : at_place, in_partition)
    at_place += is_at_its_place(), in_partition += partition_has_place();
#pragma omp parallel proc_bind(master) reduction(+ : together)
    together += omp_get_num_places() == 0 || omp_get_place_num() == 0;
    omp_set_max_active_levels(2);
#pragma omp parallel reduction(+ : inner)
    {
#pragma omp parallel num_threads(3) proc_bind(close) reduction(+ : inner)
        inner += is_at_its_place();
    }
    printf("%d %d %d %d\n", at_place, in_partition, together, inner > 0);
    return 0;
}
