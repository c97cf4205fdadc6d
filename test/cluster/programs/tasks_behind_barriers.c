// SPDX-License-Identifier: BSD-3-Clause
// Tasks that read what other threads wrote ahead of a barrier, while threads of other nodes still
// help inside it: plain ones, with dependences, in a taskgroup with a reduction, detached, and
// waited for; some take a critical or an atomic. Teams shrink and grow. No race in any of it.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { words = 16384, kinds = 6 };
static int data[words];
static long stale, ran, in_critical;

static int count_stale(int task, int tasks, int step) {
    int bad = 0;
    for (int w = task; w < words; w += tasks * 61) bad += data[w] != step;
    return bad;
}

static void note(int bad) {
#pragma omp atomic
    ++ran;
    if (bad == 0) return;
#pragma omp atomic
    stale += bad;
}

static void write_all(int step, int by_all) {
    if (!by_all) {
#pragma omp single
        for (int w = 0; w < words; ++w) data[w] = step;
        return;
    }
    const int me = omp_get_thread_num(), all = omp_get_num_threads();
    for (int w = me; w < words; w += all) data[w] = step;
#pragma omp barrier
}

static void make_task(int kind, int i, int tasks, int step) {
    switch (kind) {
        case 0:
#pragma omp task
            note(count_stale(i, tasks, step));
            break;
        case 1: {
            static char places[64];
            (void)places;
#pragma omp task depend(inout : places[i % 64])
            note(count_stale(i, tasks, step));
            break;
        }
        case 2: {
            int bad = 0;
#pragma omp taskgroup task_reduction(+ : bad)
            {
#pragma omp task in_reduction(+ : bad)
                bad += count_stale(i, tasks, step);
            }
            note(bad);
            break;
        }
        case 3: {
            omp_event_handle_t event;
#pragma omp task detach(event)
            {
                note(count_stale(i, tasks, step));
                omp_fulfill_event(event);
            }
            break;
        }
        case 4: {
#pragma omp task
            note(count_stale(i, tasks, step));
#pragma omp taskwait
            break;
        }
        default:
#pragma omp task
        {
            int bad = 0;
#pragma omp critical
            {
                bad = count_stale(i, tasks, step);
                ++in_critical;
            }
            note(bad);
        }
    }
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 4, tasks = 16, steps = 4;
    const int most = omp_get_max_threads();
    long wanted = 0;
    int step = 0;
    for (int round = 0; round < rounds; ++round)
        for (int kind = 0; kind < kinds; ++kind) {
            // Every third team is smaller.
            const int size = (round * kinds + kind) % 3 == 2 && most > 2 ? most - 1 : most;
            const int first = step + 1;
#pragma omp parallel num_threads(size)
            for (int s = first; s < first + steps; ++s) {
                write_all(s, round % 2);
#pragma omp for nowait
                for (int i = 0; i < tasks; ++i) make_task(kind, i, tasks, s);
#pragma omp barrier
            }
            step += steps;
            wanted += (long)steps * tasks;
        }
    printf("%ld of %ld tasks, %ld stale words, %s\n", ran, wanted, stale,
           in_critical == wanted / kinds ? "each critical counted" : "criticals lost");
    return ran != wanted || stale != 0;
}
