// SPDX-License-Identifier: BSD-3-Clause
// Locks that another thread unsets, nestable locks and tasks, allocators' traits, affinity formats.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static omp_lock_t lock;

static int hand_over(int rounds) {
    int data = 0, wrong = 0;
    omp_init_lock(&lock);
    for (int round = 0; round < rounds; ++round) {
#pragma omp parallel
        {
            if (omp_get_thread_num() == 0) omp_set_lock(&lock);
#pragma omp barrier
            if (omp_get_thread_num() == omp_get_num_threads() - 1) {
                data += 1;
                omp_unset_lock(&lock);
            }
        }
        if (!omp_test_lock(&lock)) ++wrong;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
    return wrong * 1000 + data;
}

static void nested(void) {
    omp_nest_lock_t nest;
    int other = -1, inside = -1;
    omp_init_nest_lock(&nest);
    omp_set_nest_lock(&nest);
#pragma omp parallel if (0)
    inside = omp_test_nest_lock(&nest);
    const int again = omp_test_nest_lock(&nest);
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1) other = omp_test_nest_lock(&nest);
    printf("nestable: %d in if(0), %d again, %d elsewhere\n", inside, again, other);
    omp_unset_nest_lock(&nest);
    omp_unset_nest_lock(&nest);
    printf("free again: %d\n", omp_test_nest_lock(&nest));
    omp_unset_nest_lock(&nest);
    omp_destroy_nest_lock(&nest);
}

static void allocators(void) {
    static const omp_alloctrait_t traits[][2] = {
        {{omp_atk_fallback, omp_atv_default_mem_fb}, {omp_atk_alignment, 128}},
        {{omp_atk_fallback, omp_atv_null_fb}, {omp_atk_alignment, 128}},
        {{omp_atk_fallback, omp_atv_abort_fb}, {omp_atk_alignment, 128}},
        {{omp_atk_fallback, omp_atv_allocator_fb}, {omp_atk_fb_data, omp_default_mem_alloc}},
        {{omp_atk_fallback, omp_atv_environment}, {omp_atk_alignment, 128}},
        {{omp_atk_partition, omp_atv_nearest}, {omp_atk_access, omp_atv_thread}}};
    for (int i = 0; i < 6; ++i) {
        const omp_allocator_handle_t made = omp_init_allocator(omp_default_mem_space, 2, traits[i]);
        char* const block = made ? omp_alloc(100, made) : NULL;
        printf("allocator %d: %d %d", i, made != 0, block != NULL);
        if (i < 3) printf(" %d", (int)((uintptr_t)block % 128));
        volatile size_t huge = (size_t)-4096;  // what no machine has
        if (made && i != 2) printf(" %d", omp_alloc(huge, made) == NULL);
        printf("\n");
        omp_free(block, made);
        if (made) omp_destroy_allocator(made);
    }
}

static void formats(void) {
    char text[200];
    omp_capture_affinity(text, sizeof text,
                         "[%0.7a][%.7a][%7a][%0.3n][%0.5L][%0.2a][%5{nesting_level}]");
    puts(text);
    const size_t length = omp_capture_affinity(text, sizeof text, "%0.22i");
    printf("%d %d\n", (int)length, strspn(text + 1, "x0") >= 4 && strncmp(text, "0x", 2) == 0);
    omp_capture_affinity(text, sizeof text, "%0.70H|");
    printf("%d\n", text[0] == ' ' && text[70] == '|');
}

static void pauses(void) {
    int inside = 0;
#pragma omp parallel
#pragma omp single
    inside = omp_pause_resource_all(omp_pause_soft) != 0;
    printf("pause: %d %d\n", omp_pause_resource(omp_pause_soft, omp_get_initial_device()), inside);
    int threads = 0;
    const int hard = omp_pause_resource_all(omp_pause_hard);
#pragma omp parallel reduction(+ : threads)
    ++threads;
    printf("hard pause: %d %d\n", hard, threads == omp_get_max_threads());
}

// Code that is generated takes them for functions of 64 bits, as numba's does.
long wide_thread_num(void) __asm__("omp_get_thread_num");
long wide_num_threads(void) __asm__("omp_get_num_threads");
long wide_max_threads(void) __asm__("omp_get_max_threads");
long wide_level(void) __asm__("omp_get_level");

static void wide(void) {
    long wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    {
        wrong += wide_thread_num() != omp_get_thread_num() || wide_level() != 1;
        wrong += wide_num_threads() != omp_get_num_threads();
    }
    printf("wide: %ld %d\n", wrong, wide_max_threads() == omp_get_max_threads());
}

int main(void) {
    wide();
    pauses();
    printf("%d\n", hand_over(40));
    nested();
    allocators();
    formats();
}
