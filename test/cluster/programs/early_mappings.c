// SPDX-License-Identifier: BSD-3-Clause
// What a library maps when it is loaded, before the program starts, is every thread's memory: its
// buffers, a part of what it keeps inaccessible, its break.
#define _GNU_SOURCE
#include "early_mappings.h"

#include <omp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static long fill_and_sum(long* at, long count, int by) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i) at[i] += i * by;
    long sum = 0;
    for (long i = 0; i < count; ++i) sum += at[i];
    return sum;
}

int main(void) {
    struct early* e = &early;
    printf("buffer %ld\n", fill_and_sum(e->buffer, early_count, 1));
    printf("grown %ld\n", fill_and_sum(e->grown, 2 * early_count, 2));
    printf("committed %ld\n", fill_and_sum(e->committed, early_count, 3));
    printf("shared %ld\n", fill_and_sum(e->shared, early_count, 4));
    printf("break %ld\n", fill_and_sum(e->on_break, early_count, 5));
    printf("kept %ld %ld\n", e->cut[0], e->cut[early_count - 1]);

    const size_t bytes = early_count * sizeof(long);
    printf("madvise %d\n", madvise(e->buffer, bytes, MADV_DONTNEED));
    printf("zero again %ld\n", fill_and_sum(e->buffer, early_count, 0));
    printf("mprotect %d\n", mprotect(e->committed + early_count, bytes, PROT_READ | PROT_WRITE));
    printf("committed later %ld\n", fill_and_sum(e->committed + early_count, early_count, 6));
    long* moved = mremap(e->buffer, bytes, 4 * bytes, MREMAP_MAYMOVE);
    printf("moved %ld\n", fill_and_sum(moved, 4 * early_count, 7));
    printf("munmap %d %d\n", munmap(moved, 4 * bytes), munmap(e->grown, 2 * bytes));
    long* more = sbrk((long)bytes);
    printf("break grows: %ld\n", fill_and_sum(more, early_count, 8));
    return 0;
}
