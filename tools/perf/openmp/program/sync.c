// SPDX-License-Identifier: BSD-3-Clause
// Role: constructs that synchronize. Method: EPCC's syncbench and arraybench (Bull, "Measuring
// synchronisation and scheduling overheads in OpenMP", EWOMP 1999): many around a short delay, less
// the delay. "data": bodies write what other threads read behind the construct.
#include <stddef.h>

#include "tools/perf/openmp/program/rows.h"

struct page {
    long at[PAGE_LONGS];
};
static struct {
    omp_lock_t lock;
    long counter;
} __attribute__((aligned(4096))) owned[THREADS_MAX];
static omp_lock_t lock;
static int has_locks;
static long given, guarded, atomic_counter;
static long copied;
static struct page copied_page;
#pragma omp threadprivate(copied, copied_page)

static void fill(struct page* page, long value) {
    for (int i = 0; i < PAGE_LONGS; ++i) page->at[i] = value + i;
}
static void expect_page(const struct page* page, long value) {
    expect((double)page->at[0], (double)value);
    expect((double)page->at[PAGE_LONGS - 1], (double)(value + PAGE_LONGS - 1));
}

static long parallel(long count) {
    for (long i = 0; i < count; ++i) {
#pragma omp parallel
        body();
    }
    return count * threads;
}
static long parallel_data(long count) {
    for (long i = 0; i < count; ++i) {
        given = run_base + i;
#pragma omp parallel
        {
            const int thread = omp_get_thread_num();
            body();
            if (i > 0) expect((double)*page_of(i - 1, neighbour_of(thread)), (double)(given - 1));
            *page_of(i, thread) = given;
        }
    }
    return count * threads;
}
static void verify_pages(long count) {
    for (int t = 0; t < threads; ++t)
        expect((double)*page_of(0, t), (double)(run_base + count - 1));
}

static long for_(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
#pragma omp for
        for (int t = 0; t < threads; ++t) body();
    }
    return count * threads;
}
static long for_data(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
#pragma omp for
        for (int t = 0; t < threads; ++t) {
            body();
            *page_of(i, t) = run_base + i;
        }
        expect((double)*page_of(i, neighbour_of(omp_get_thread_num())), (double)(run_base + i));
    }
    return count * threads;
}
static long parallel_for(long count) {
    for (long i = 0; i < count; ++i) {
#pragma omp parallel for
        for (int t = 0; t < threads; ++t) body();
    }
    return count * threads;
}
static long parallel_for_data(long count) {
    for (long i = 0; i < count; ++i) {
#pragma omp parallel for
        for (int t = 0; t < threads; ++t) {
            body();
            if (i > 0) expect((double)*page_of(i - 1, neighbour_of(t)), (double)(run_base + i - 1));
            *page_of(i, t) = run_base + i;
        }
    }
    return count * threads;
}
static long barrier(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        body();
#pragma omp barrier
    }
    return count * threads;
}
static long barrier_data(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        const int thread = omp_get_thread_num();
        body();
        *page_of(i, thread) = run_base + i;
#pragma omp barrier
        expect((double)*page_of(i, neighbour_of(thread)), (double)(run_base + i));
    }
    return count * threads;
}
static long single(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
#pragma omp single
        body();
    }
    return count;
}
static long single_data(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
#pragma omp single
        {
            body();
            *page_of(i, 0) = run_base + i;
        }
        expect((double)*page_of(i, 0), (double)(run_base + i));
    }
    return count;
}
static long copyprivate(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        long word = 0;
#pragma omp single copyprivate(word)
        {
            body();
            word = run_base + i;
        }
        expect((double)word, (double)(run_base + i));
    }
    return count;
}
static long copyprivate_data(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        struct page page;
#pragma omp single copyprivate(page)
        {
            body();
            fill(&page, run_base + i);
        }
        expect_page(&page, run_base + i);
    }
    return count;
}

static long critical_alone(long count) {
    for (long i = 0; i < count; ++i) {
#pragma omp critical
        body();
    }
    return count;
}
static long critical_alone_data(long count) {
    guarded = run_base;
    for (long i = 0; i < count; ++i) {
#pragma omp critical
        {
            body();
            ++guarded;
        }
    }
    return count;
}
static long critical_contended(long count) {
#pragma omp parallel
    for (long i = 0; i < count / threads; ++i) {
#pragma omp critical
        body();
    }
    return count;
}
static long critical_contended_data(long count) {
    guarded = run_base;
#pragma omp parallel
    for (long i = 0; i < count / threads; ++i) {
#pragma omp critical
        {
            body();
            ++guarded;
        }
    }
    return count;
}
static void verify_guarded(long count) { expect((double)guarded, (double)(run_base + count)); }

static void make_locks(void) {
    if (has_locks) return;
    omp_init_lock(&lock);
    for (int t = 0; t < threads; ++t) omp_init_lock(&owned[t].lock);
    has_locks = 1;
}
static long lock_alone(long count) {
    make_locks();
    for (long i = 0; i < count; ++i) {
        omp_set_lock(&lock);
        body();
        omp_unset_lock(&lock);
    }
    return count;
}
static long lock_alone_data(long count) {
    make_locks();
    guarded = run_base;
    for (long i = 0; i < count; ++i) {
        omp_set_lock(&lock);
        body();
        ++guarded;
        omp_unset_lock(&lock);
    }
    return count;
}
static long lock_own(long count) {
    make_locks();
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        omp_lock_t* const mine = &owned[omp_get_thread_num()].lock;
        omp_set_lock(mine);
        body();
        omp_unset_lock(mine);
    }
    return count * threads;
}
static long lock_own_data(long count) {
    make_locks();
    for (int t = 0; t < threads; ++t) owned[t].counter = run_base;
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        const int thread = omp_get_thread_num();
        omp_set_lock(&owned[thread].lock);
        body();
        ++owned[thread].counter;
        omp_unset_lock(&owned[thread].lock);
    }
    return count * threads;
}
static void verify_owned(long count) {
    for (int t = 0; t < threads; ++t) expect((double)owned[t].counter, (double)(run_base + count));
}
static long lock_contended(long count) {
    make_locks();
#pragma omp parallel
    for (long i = 0; i < count / threads; ++i) {
        omp_set_lock(&lock);
        body();
        omp_unset_lock(&lock);
    }
    return count;
}
static long lock_contended_data(long count) {
    make_locks();
    guarded = run_base;
#pragma omp parallel
    for (long i = 0; i < count / threads; ++i) {
        omp_set_lock(&lock);
        body();
        ++guarded;
        omp_unset_lock(&lock);
    }
    return count;
}

// Atomics are too short for a delay beside them; each changes memory.
static long atomic_alone(long count) {
    atomic_counter = run_base;
    for (long i = 0; i < count; ++i) {
#pragma omp atomic
        ++atomic_counter;
    }
    account.executed += count;
    return count;
}
static long atomic_own(long count) {
    for (int t = 0; t < threads; ++t) *page_of(0, t) = run_base - 1;
#pragma omp parallel
    {
        long* const mine = page_of(0, omp_get_thread_num());
        for (long i = 0; i < count; ++i) {
#pragma omp atomic
            ++*mine;
        }
        account.executed += count;
    }
    return count * threads;
}
static long atomic_contended(long count) {
    atomic_counter = run_base;
#pragma omp parallel
    {
        for (long i = 0; i < count / threads; ++i) {
#pragma omp atomic
            ++atomic_counter;
        }
        account.executed += count / threads;
    }
    return count;
}
static long atomic_contended_data(long count) {
    atomic_counter = run_base;
#pragma omp parallel
    {
        long* const mine = page_of(0, omp_get_thread_num());
        for (long i = 0; i < count / threads; ++i) {
            *mine = run_base + i;
#pragma omp atomic
            ++atomic_counter;
        }
        account.executed += count / threads;
    }
    return count;
}
static void verify_atomic(long count) {
    expect((double)atomic_counter, (double)(run_base + count));
}
static void verify_atomic_data(long count) {
    verify_atomic(count);
    verify_pages(count / threads);
}

static long ordered(long count) {
#pragma omp parallel for ordered schedule(static, 1)
    for (long i = 0; i < count; ++i) {
#pragma omp ordered
        body();
    }
    return count;
}
static long ordered_data(long count) {
    guarded = run_base;
#pragma omp parallel for ordered schedule(static, 1)
    for (long i = 0; i < count; ++i) {
#pragma omp ordered
        {
            body();
            expect((double)guarded, (double)(run_base + i));
            ++guarded;
        }
    }
    return count;
}
static long reduction(long count) {
    double sum = 0;
    for (long i = 0; i < count; ++i) {
#pragma omp parallel reduction(+ : sum)
        {
            body();
            sum += 1;
        }
    }
    expect(sum, (double)count * threads);
    return count * threads;
}
static long reduction_data(long count) {
    for (long i = 0; i < count; ++i) {
        double sum = 0;
#pragma omp parallel reduction(+ : sum)
        {
            body();
            *page_of(0, omp_get_thread_num()) = run_base + i;
            sum += 1;
        }
        expect(sum, (double)threads);
    }
    return count * threads;
}
static long copyin(long count) {
    for (long i = 0; i < count; ++i) {
        copied = run_base + i;
#pragma omp parallel copyin(copied)
        {
            body();
            expect((double)copied, (double)(run_base + i));
        }
    }
    return count * threads;
}
static long copyin_data(long count) {
    for (long i = 0; i < count; ++i) {
        fill(&copied_page, run_base + i);
#pragma omp parallel copyin(copied_page)
        {
            body();
            expect_page(&copied_page, run_base + i);
        }
    }
    return count * threads;
}
static long firstprivate(long count) {
    for (long i = 0; i < count; ++i) {
        long word = run_base + i;
#pragma omp parallel firstprivate(word)
        {
            body();
            expect((double)word, (double)(run_base + i));
        }
    }
    return count * threads;
}
static long firstprivate_data(long count) {
    struct page page;
    for (long i = 0; i < count; ++i) {
        fill(&page, run_base + i);
#pragma omp parallel firstprivate(page)
        {
            body();
            expect_page(&page, run_base + i);
        }
    }
    return count * threads;
}

const struct row sync_rows[] = {
    {"parallel", parallel, NULL, DELAYED | EVERYONE},
    {"parallel, data", parallel_data, NULL, DELAYED | EVERYONE},
    {"for", for_, NULL, DELAYED | EVERYONE},
    {"for, data", for_data, NULL, DELAYED | EVERYONE},
    {"parallel for", parallel_for, NULL, DELAYED | EVERYONE},
    {"parallel for, data", parallel_for_data, NULL, DELAYED | EVERYONE},
    {"barrier", barrier, NULL, DELAYED | EVERYONE},
    {"barrier, data", barrier_data, NULL, DELAYED | EVERYONE},
    {"single", single, NULL, DELAYED},
    {"single, data", single_data, NULL, DELAYED},
    {"copyprivate", copyprivate, NULL, DELAYED},
    {"copyprivate, data of 4 KiB", copyprivate_data, NULL, DELAYED},
    {"critical, alone", critical_alone, NULL, DELAYED},
    {"critical, alone, data", critical_alone_data, verify_guarded, DELAYED},
    {"critical, contended", critical_contended, NULL, DELAYED | EVERYONE},
    {"critical, contended, data", critical_contended_data, verify_guarded, DELAYED | EVERYONE},
    {"lock, alone", lock_alone, NULL, DELAYED},
    {"lock, alone, data", lock_alone_data, verify_guarded, DELAYED},
    {"lock, each its own", lock_own, NULL, DELAYED | EVERYONE},
    {"lock, each its own, data", lock_own_data, verify_owned, DELAYED | EVERYONE},
    {"lock, contended", lock_contended, NULL, DELAYED | EVERYONE},
    {"lock, contended, data", lock_contended_data, verify_guarded, DELAYED | EVERYONE},
    {"atomic, alone", atomic_alone, verify_atomic, 0},
    {"atomic, each its own", atomic_own, verify_pages, EVERYONE},
    {"atomic, contended", atomic_contended, verify_atomic, EVERYONE},
    {"atomic, contended, data", atomic_contended_data, verify_atomic_data, EVERYONE},
    {"ordered", ordered, NULL, DELAYED | EVERYONE},
    {"ordered, data", ordered_data, NULL, DELAYED | EVERYONE},
    {"reduction", reduction, NULL, DELAYED | EVERYONE},
    {"reduction, data", reduction_data, verify_pages, DELAYED | EVERYONE},
    {"copyin", copyin, NULL, DELAYED | EVERYONE},
    {"copyin, data of 4 KiB", copyin_data, NULL, DELAYED | EVERYONE},
    {"firstprivate", firstprivate, NULL, DELAYED | EVERYONE},
    {"firstprivate, data of 4 KiB", firstprivate_data, NULL, DELAYED | EVERYONE},
    {NULL, NULL, NULL, 0},
};
