// SPDX-License-Identifier: BSD-3-Clause
// How a thread computes (rounding, traps, subnormal numbers) it has from the thread that makes it:
// before the first region, when a team grows and shrinks, and in teams inside of teams.
#define _GNU_SOURCE
#include <fenv.h>
#include <omp.h>
#include <stdio.h>
#include <xmmintrin.h>

enum { threads_max = 64, flush_to_zero = 1 << 15 };

struct Way {
    int rounding, x87_rounding, flushes, traps;
};
static struct Way ways[threads_max];

static void look(struct Way* way) {
    unsigned short word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    way->rounding = fegetround();
    way->x87_rounding = word & 0xc00;
    way->flushes = (_mm_getcsr() & flush_to_zero) != 0;
    way->traps = fegetexcept() & FE_DIVBYZERO;
}

static void show(const char* title, int threads) {
    printf("%s:", title);
    for (int i = 0; i < threads; ++i)
        printf(" %x/%x/%d/%d", (unsigned)ways[i].rounding, (unsigned)ways[i].x87_rounding,
               ways[i].flushes, ways[i].traps != 0);
    printf("\n");
}

static void region(const char* title, int threads) {
#pragma omp parallel num_threads(threads)
    look(&ways[omp_get_thread_num()]);
    show(title, threads);
}

static void inner_regions(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        const int outer = omp_get_thread_num(), before = fegetround();
        fesetround(outer == 0 ? FE_UPWARD : FE_DOWNWARD);
#pragma omp parallel num_threads(2)
        look(&ways[2 * outer + omp_get_thread_num()]);
        fesetround(before);
    }
    show("inside", 4);
}

int main(void) {
    fesetround(FE_UPWARD);
    _mm_setcsr(_mm_getcsr() | flush_to_zero);
    feenableexcept(FE_DIVBYZERO);
    region("first", 2);
    region("grown", 4);
    fesetround(FE_DOWNWARD);
    fedisableexcept(FE_DIVBYZERO);
    region("changed", 4);
    region("shrunk", 2);
    region("grown again", 4);
    _mm_setcsr(_mm_getcsr() & ~flush_to_zero);
    fesetround(FE_TONEAREST);
    inner_regions();
    region("after", 4);
    return 0;
}
