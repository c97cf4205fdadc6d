// SPDX-License-Identifier: BSD-3-Clause
// Atomics in packed structures: some lie across two lines, some across two pages.
#include <stddef.h>
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

/// As what they would be if they lay as they should: clang calls a library where it sees that not.
static long* count_of(struct record* r) {
    return (long*)((char*)r + offsetof(struct record, count));
}
static short* few_of(struct record* r) { return (short*)((char*)r + offsetof(struct record, few)); }
static int* total_of(struct record* r) { return (int*)((char*)r + offsetof(struct record, total)); }

int main(void) {
    struct record* const all = calloc(records, sizeof *all);
    const int team = team_size();
#pragma omp parallel
    for (int turn = 0; turn < turns; ++turn) {
        for (int i = 0; i < records; ++i) {
            struct record* const r = &all[(i * 7 + omp_get_thread_num() * 13) % records];
            __atomic_fetch_add(count_of(r), i + 1, __ATOMIC_RELAXED);
            short* const few = few_of(r);
#pragma omp atomic
            *few += 1;
            long before = 0;
            do before = __atomic_load_n(total_of(r), __ATOMIC_RELAXED);
            while (!__sync_bool_compare_and_swap(total_of(r), (int)before, (int)before + 3));
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
