// SPDX-License-Identifier: BSD-3-Clause
// What orders threads behind a barrier that is not over for all, each with a look at what all wrote
// ahead of it: doacross, ordered, a lock, regions inside tasks, locks inside of a taskloop.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { words = 65536, kinds = 5, loops = 16 };
static int data[words];
static long stale[kinds];

static void look(int kind, int first, int step) {
    int bad = 0;
    for (int w = first; w < words; w += 61) bad += data[w] != step;
    if (bad == 0) return;
#pragma omp atomic
    stale[kind] += bad;
}

static void use(int kind, int step, omp_lock_t* lock) {
    if (kind == 0) {
#pragma omp for ordered(1) schedule(static, 1)
        for (int i = 0; i < loops; ++i) {
#pragma omp ordered depend(sink : i - 1)
            look(kind, i, step);
#pragma omp ordered depend(source)
        }
    } else if (kind == 1) {
#pragma omp for ordered schedule(dynamic, 1)
        for (int i = 0; i < loops; ++i) {
#pragma omp ordered
            look(kind, i, step);
        }
    } else if (kind == 2) {
        omp_set_lock(lock);
        look(kind, omp_get_thread_num(), step);
        omp_unset_lock(lock);
    } else if (kind == 3) {
#pragma omp for nowait
        for (int i = 0; i < loops; ++i)
#pragma omp task
        {
#pragma omp parallel num_threads(2)
            look(kind, i + omp_get_thread_num(), step);
        }
    } else {
#pragma omp single nowait
#pragma omp taskloop grainsize(1)
        for (int i = 0; i < loops; ++i) {
            omp_set_lock(lock);
            look(kind, i, step);
            omp_unset_lock(lock);
        }
    }
}

int main(int argc, char** argv) {
    const int steps = argc > 1 ? atoi(argv[1]) : 40;
    omp_lock_t lock;
    omp_init_lock(&lock);
    omp_set_max_active_levels(2);
    for (int kind = 0; kind < kinds; ++kind) {
#pragma omp parallel
        for (int step = kind * steps + 1; step <= (kind + 1) * steps; ++step) {
            for (int w = omp_get_thread_num(); w < words; w += omp_get_num_threads())
                data[w] = step;
#pragma omp barrier
            use(kind, step, &lock);
#pragma omp barrier
        }
        printf("kind %d: %ld stale words\n", kind, stale[kind]);
    }
    return 0;
}
