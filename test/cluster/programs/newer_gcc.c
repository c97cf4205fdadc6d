// SPDX-License-Identifier: BSD-3-Clause
// What code of gcc 13 and 14 calls and that of gcc 12 does not, called as that code would. Linked
// with a library that has the names under gcc's version nodes and does nothing (newer_gcc.py).
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void GOMP_taskwait_depend_nowait(void** depend);
void* GOMP_target_map_indirect_ptr(void* pointer);
void* GOMP_alloc(size_t alignment, size_t bytes, uintptr_t allocator);
void GOMP_free(void* block, uintptr_t allocator);
void GOMP_add_alloc(void* block);
bool GOMP_is_alloc(void* block);
int omp_in_explicit_task(void);

enum { blocks = 64 };

int main(void) {
    static void* made[blocks];
    static int found[blocks], plain[blocks], again[blocks];
    // Made on one node, asked for on another.
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int i = 0; i < blocks; ++i) {
            made[i] = i % 2 == 0 ? GOMP_alloc(16, 100, 1) : malloc(100);
            if (i % 4 == 0) GOMP_add_alloc(made[i]);
        }
#pragma omp for schedule(static)
        for (int i = 0; i < blocks; ++i) {
            void* const block = made[blocks - 1 - i];
            found[i] = GOMP_is_alloc(block);
            again[i] = GOMP_is_alloc(block);
            plain[i] = (blocks - 1 - i) % 4 == 0;
            if ((blocks - 1 - i) % 2 == 0)
                GOMP_free(block, 0);
            else
                free(block);
        }
    }
    int right = 0;
    for (int i = 0; i < blocks; ++i) right += found[i] == plain[i] && !again[i];
    printf("allocatables %d of %d\n", right, blocks);

    // A taskwait that blocks no thread: what it depends on comes before what depends on it.
    int value = 0, seen = -1, other = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : value)
        value = 5;
        void* depend[] = {(void*)(uintptr_t)2, (void*)(uintptr_t)2, &value, &other};
        GOMP_taskwait_depend_nowait(depend);
#pragma omp task depend(in : other)
        seen = value;
    }
    printf("order %d\n", seen);
    int inside = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task shared(inside)
        inside = omp_in_explicit_task();
    }
    printf("explicit %d %d\n", inside, omp_in_explicit_task());
    printf("same %d\n", GOMP_target_map_indirect_ptr((void*)&main) == (void*)&main);
    return 0;
}
