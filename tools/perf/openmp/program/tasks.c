// SPDX-License-Identifier: BSD-3-Clause
// Role: tasks that do nothing but count. Method: EPCC's taskbench (LaGrone et al., "A set of
// microbenchmarks for measuring OpenMP task overheads", PDPTA 2011). A figure is the time for one
// task of all. "data": each task writes a word that its creator or a neighbour reads.
#include <stddef.h>

#include "tools/perf/openmp/program/rows.h"

enum { DEPTH = 6, LEAVES = 1 << DEPTH, TREE = 2 * LEAVES - 1 };

static long cells[BODIES_MAX] __attribute__((aligned(4096)));

static long all_threads(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
#pragma omp task
        ++account.executed;
    }
    return count * threads;
}
static long all_threads_data(long count) {
#pragma omp parallel
    {
        const long first = omp_get_thread_num() * count;
        for (long i = first; i < first + count; ++i) {
#pragma omp task
            {
                ++account.executed;
                cells[i] = run_base + i;
            }
        }
    }
    return count * threads;
}
static void verify_cells(long count) {
    for (long i = 0; i < count * threads; ++i) expect((double)cells[i], (double)(run_base + i));
}
static long one_thread(long count) {
#pragma omp parallel
#pragma omp master
    for (long i = 0; i < count * threads; ++i) {
#pragma omp task
        ++account.executed;
    }
    return count * threads;
}
static long one_thread_data(long count) {
#pragma omp parallel
#pragma omp master
    for (long i = 0; i < count * threads; ++i) {
#pragma omp task
        {
            ++account.executed;
            cells[i] = run_base + i;
        }
    }
    return count * threads;
}
static long undeferred(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
#pragma omp task if (0)
        ++account.executed;
    }
    return count * threads;
}
static long undeferred_data(long count) {
#pragma omp parallel
    {
        long* const mine = page_of(0, omp_get_thread_num());
        for (long i = 0; i < count; ++i) {
#pragma omp task if (0)
            {
                ++account.executed;
                *mine = run_base + i;
            }
            expect((double)*mine, (double)(run_base + i));
        }
    }
    return count * threads;
}
static long taskwait(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
#pragma omp task
        ++account.executed;
#pragma omp taskwait
    }
    return count * threads;
}
static long taskwait_data(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        long answer = 0;
#pragma omp task shared(answer)
        {
            ++account.executed;
            answer = run_base + i;
        }
#pragma omp taskwait
        expect((double)answer, (double)(run_base + i));
    }
    return count * threads;
}
static long barrier(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
#pragma omp task
        ++account.executed;
#pragma omp barrier
    }
    return count * threads;
}
static long barrier_data(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) {
        const int thread = omp_get_thread_num();
#pragma omp task
        {
            ++account.executed;
            *page_of(i, thread) = run_base + i;
        }
#pragma omp barrier
        expect((double)*page_of(i, neighbour_of(thread)), (double)(run_base + i));
    }
    return count * threads;
}

static void tree(int depth) {
    ++account.executed;
    if (depth == 0) return;
#pragma omp task
    tree(depth - 1);
#pragma omp task
    tree(depth - 1);
#pragma omp taskwait
}
static long leaves(int depth) {
    ++account.executed;
    if (depth == 0) return 1;
    long left = 0, right = 0;
#pragma omp task shared(left)
    left = leaves(depth - 1);
#pragma omp task shared(right)
    right = leaves(depth - 1);
#pragma omp taskwait
    return left + right;
}
static long tree_of_all(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) tree(DEPTH);
    return count * threads * TREE;
}
static long tree_of_all_data(long count) {
#pragma omp parallel
    for (long i = 0; i < count; ++i) expect((double)leaves(DEPTH), LEAVES);
    return count * threads * TREE;
}
static long tree_of_one(long count) {
#pragma omp parallel
#pragma omp master
    for (long i = 0; i < count; ++i) tree(DEPTH);
    return count * TREE;
}
static long tree_of_one_data(long count) {
#pragma omp parallel
#pragma omp master
    for (long i = 0; i < count; ++i) expect((double)leaves(DEPTH), LEAVES);
    return count * TREE;
}

const struct row task_rows[] = {
    {"tasks of all threads", all_threads, NULL, EACH_BODY | FEW},
    {"tasks of all threads, data", all_threads_data, verify_cells, EACH_BODY | FEW},
    {"tasks of one thread", one_thread, NULL, EACH_BODY | FEW},
    {"tasks of one thread, data", one_thread_data, verify_cells, EACH_BODY | FEW},
    {"tasks with if(0)", undeferred, NULL, EACH_BODY | FEW | EVERYONE},
    {"tasks with if(0), data", undeferred_data, NULL, EACH_BODY | FEW | EVERYONE},
    {"task and taskwait", taskwait, NULL, EACH_BODY | FEW},
    {"task and taskwait, data", taskwait_data, NULL, EACH_BODY | FEW},
    {"task and barrier", barrier, NULL, EACH_BODY | FEW},
    {"task and barrier, data", barrier_data, NULL, EACH_BODY | FEW},
    {"task tree of all threads", tree_of_all, NULL, EACH_BODY | FEW},
    {"task tree of all threads, data", tree_of_all_data, NULL, EACH_BODY | FEW},
    {"task tree of one thread", tree_of_one, NULL, EACH_BODY | FEW},
    {"task tree of one thread, data", tree_of_one_data, NULL, EACH_BODY | FEW},
    {NULL, NULL, NULL, 0},
};
