// SPDX-License-Identifier: BSD-3-Clause
// The library of early_mappings.c: all ways to map memory, in its constructor.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "early_mappings.h"

struct early early;

static void* take(size_t bytes, int protection, int kind) {
    void* at = mmap(NULL, bytes, protection, kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) _exit(9);
    return at;
}

__attribute__((constructor)) static void map_all(void) {
    const size_t bytes = early_count * sizeof(long);
    const int both = PROT_READ | PROT_WRITE;
    early.buffer = take(bytes, both, MAP_PRIVATE);
    for (long i = 0; i < early_count; i += 64) early.buffer[i] = i;

    early.grown = take(bytes, both, MAP_PRIVATE);
    early.grown[early_count - 1] = 11;
    early.grown = mremap(early.grown, bytes, 2 * bytes, MREMAP_MAYMOVE);

    early.committed = take(bytes << 8, PROT_NONE, MAP_PRIVATE);
    if (mprotect(early.committed, bytes, both) != 0) _exit(9);
    early.committed[7] = 12;

    early.shared = take(bytes, both, MAP_SHARED);
    early.shared[early_count / 2] = 13;

    // Aligned by mapping more and giving back what lies before and behind.
    char* wide = take(3 * bytes, both, MAP_PRIVATE);
    if (munmap(wide, bytes) != 0 || munmap(wide + 2 * bytes, bytes) != 0) _exit(9);
    early.cut = (long*)(wide + bytes);
    early.cut[0] = 14;
    early.cut[early_count - 1] = 15;

    early.on_break = sbrk((long)bytes);
    early.on_break[1] = 16;
}
