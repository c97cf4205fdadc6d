// SPDX-License-Identifier: BSD-3-Clause
// Role: what LLVM's runtime shows of threads' places, on standard output, by the format that main
// has set, also of regions of one thread; and what it says of memory that is not to be had.
#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

int __kmpc_get_target_offload(void);

static int entered;  // no compiler leaves such regions out

static void regions(void) {
    for (int round = 0; round < 2; ++round) {
#pragma omp parallel
        {
#pragma omp atomic
            ++entered;
        }
    }
    for (int round = 0; round < 2; ++round) {
#pragma omp parallel num_threads(1)
        {
#pragma omp atomic
            ++entered;
        }
    }
#pragma omp parallel
    {
#pragma omp atomic
        ++entered;
    }
}

int main(void) {
    char format[200];
    omp_get_affinity_format(format, sizeof format);
    puts(format);
    omp_set_affinity_format("shown: level %L thread %n of %N, above %a, %%%0.4n|%5n|%{team_num}");
    regions();
    omp_set_affinity_format("other: %{thread_num} of %{num_threads}");
    regions();
    omp_display_affinity(NULL);
#pragma omp parallel
    omp_display_affinity("own: %n of %N");
    const size_t length = omp_capture_affinity(format, 8, "captured %L");
    printf("%zu %s\n", length, format);

    void* const wrong = kmp_aligned_malloc(128, 127);
    const int why = errno;
    void* const right = kmp_aligned_malloc(128, 256);
    printf("%d %d %d\n", wrong == NULL, why == EINVAL, (unsigned long)right % 256 == 0);
    kmp_free(right);
    omp_alloctrait_t traits[] = {{omp_atk_pool_size, 2 << 20}, {omp_atk_fallback, omp_atv_null_fb}};
    const omp_allocator_handle_t pool = omp_init_allocator(omp_default_mem_space, 2, traits);
    int given = 0;
#pragma omp parallel num_threads(2) reduction(+ : given)
    {
        void* const block = omp_alloc(1 << 20, pool);
        given += block != NULL;
#pragma omp barrier
        omp_free(block, pool);
    }
    printf("%d\n", given);
    omp_destroy_allocator(pool);
    kmp_set_defaults("OMP_TARGET_OFFLOAD=Mandatory");
    printf("%d %d\n", kmp_get_blocktime(), __kmpc_get_target_offload());
    return 0;
}
