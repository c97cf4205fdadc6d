/* SPDX-License-Identifier: BSD-3-Clause
   Role: the symmetric heap of shmem.c: free ranges of offsets, first fit. Every PE makes the same
   calls in the same order, so every PE finds the same offset without asking another. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

enum { heap_grain = 64 };

struct heap_range {
    size_t first, bytes;
    struct heap_range* next;
};
struct heap {
    struct heap_range *free, *used; /* free: by offset */
};

static size_t heap_rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static struct heap_range* heap_range_of(size_t first, size_t bytes, struct heap_range* next) {
    struct heap_range* made = malloc(sizeof *made);
    if (made == NULL) abort();
    *made = (struct heap_range){first, bytes, next};
    return made;
}

/* Returns the offset of `bytes` free bytes; 0 if there are none. Offset 0 is never free. */
static size_t heap_take(struct heap* heap, size_t bytes, size_t alignment) {
    bytes = heap_rounded(bytes, heap_grain);
    for (struct heap_range** at = &heap->free; *at != NULL; at = &(*at)->next) {
        struct heap_range* range = *at;
        const size_t first = heap_rounded(range->first, alignment), before = first - range->first;
        if (range->bytes < before || range->bytes - before < bytes) continue;
        const size_t behind = range->bytes - before - bytes;
        if (behind != 0) range->next = heap_range_of(first + bytes, behind, range->next);
        range->bytes = before;
        if (before == 0) {
            *at = range->next;
            free(range);
        }
        heap->used = heap_range_of(first, bytes, heap->used);
        return first;
    }
    return 0;
}

/* Returns 0 if nothing was taken at `first`. */
static int heap_give_back(struct heap* heap, size_t first) {
    struct heap_range** at = &heap->used;
    while (*at != NULL && (*at)->first != first) at = &(*at)->next;
    struct heap_range* range = *at;
    if (range == NULL) return 0;
    *at = range->next;
    struct heap_range **place = &heap->free, *before = NULL;
    while (*place != NULL && (*place)->first < first) {
        before = *place;
        place = &before->next;
    }
    range->next = *place;
    *place = range;
    for (struct heap_range *each = before != NULL ? before : range, *next;
         (next = each->next) != NULL && each->first <= first;) {
        if (each->first + each->bytes != next->first) {
            each = next;
            continue;
        }
        each->bytes += next->bytes;
        each->next = next->next;
        free(next);
    }
    return 1;
}
