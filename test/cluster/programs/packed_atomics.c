// SPDX-License-Identifier: BSD-3-Clause
// Atomics in packed structures: some lie across two lines, some across two pages.
#include <stdlib.h>

#include "verdict.h"

struct __attribute__((packed)) record {
    char tag;
    long count;
    short few;
    int total;
    char rest[4];
};
enum { records = 900, turns = 6 };

int main(void) {
    struct record* const all = calloc(records, sizeof *all);
    const int team = team_size();
#pragma omp parallel
    for (int turn = 0; turn < turns; ++turn) {
        for (int i = 0; i < records; ++i) {
            struct record* const r = &all[(i * 7 + omp_get_thread_num() * 13) % records];
            __atomic_fetch_add((long*)&r->count, i + 1, __ATOMIC_RELAXED);
#pragma omp atomic
            r->few += 1;
            long before = 0;
            do before = __atomic_load_n((int*)&r->total, __ATOMIC_RELAXED);
            while (!__sync_bool_compare_and_swap((int*)&r->total, (int)before, (int)before + 3));
        }
    }
    long count = 0, few = 0, total = 0, across = 0;
    for (int i = 0; i < records; ++i) {
        count += all[i].count;
        few += all[i].few;
        total += all[i].total;
        const unsigned long at = (unsigned long)&all[i].count;
        across += at / 4096 != (at + 7) / 4096;
    }
    check("some lie across pages", across > 0);
    check_equal("none of the long ones was lost", count,
                (long)team * turns * records * (records + 1) / 2);
    check_equal("nor of the short ones", few, (long)team * turns * records);
    check_equal("nor of the exchanges", total, 3L * team * turns * records);
    return wrong;
}
