// SPDX-License-Identifier: BSD-3-Clause
// Cancellation of regions, loops, sections and taskgroups. Loops that never end by themselves, and
// threads that wait at barriers no other thread comes to: a thread that does not learn of a
// cancellation hangs. With OMP_CANCELLATION=false nothing is cancelled.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const long long forever = 1ll << 50;
static long long endless(void) { return omp_get_cancellation() ? forever : 1000; }

static void loops(void) {
    int found = 0, after = 0;
    const long long end = endless();
#pragma omp parallel reduction(+ : after)
    {
        int first = 1;
#pragma omp for
        for (long long i = 0; i < end; ++i) {
            if (first && omp_get_thread_num() == omp_get_num_threads() - 1) {
                first = 0;
#pragma omp atomic
                found += 1;
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
        after += 1;
#pragma omp for schedule(dynamic, 7)
        for (long long i = 0; i < end; ++i) {
            if (i == 500) {
#pragma omp atomic
                found += 10;
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
        after += 1;
        // The next ones are not cancelled.
#pragma omp for schedule(dynamic, 7)
        for (long long i = 0; i < 100; ++i) {
#pragma omp cancellation point for
#pragma omp atomic
            found += 100;
        }
#pragma omp for reduction(+ : found)
        for (long long i = 0; i < 100; ++i) {
#pragma omp cancel for if (i < 0)
            found += 1000;
        }
    }
    printf("loops: %d, %d behind\n", found, after);
}

static void sections(void) {
    int ran = 0, after = 0;
#pragma omp parallel reduction(+ : after)
    {
#pragma omp sections
        {
#pragma omp section
            {
                while (omp_get_cancellation()) {
#pragma omp cancellation point sections
                }
            }
#pragma omp section
            {
#pragma omp atomic
                ran += 1;
#pragma omp cancel sections
            }
        }
        after += 1;
    }
    printf("sections: %d, %d behind\n", ran, after);
}

/// All threads but one wait at a barrier. Thread `who` cancels.
static void barriers(int rounds) {
    int passed = 0, ends = 0;
    const int threads = omp_get_max_threads();
    for (int round = 0; round < rounds; ++round) {
        const int who = round % threads;
#pragma omp parallel
        {
            // Some constructs that are not cancelled, more in some regions than in others.
            for (int i = 0; i < round % 5; ++i) {
#pragma omp for schedule(dynamic) nowait
                for (int j = 0; j < 8; ++j) {
                }
#pragma omp barrier
            }
            if (omp_get_thread_num() == who) {
                if (round % 3 == 0) usleep(2000);
#pragma omp cancel parallel
            } else if (omp_get_thread_num() % 2 == 0) {
                // Constructs that only some threads come to, because the region is cancelled.
                for (int i = 0; i < 3 && omp_get_cancellation(); ++i) {
#pragma omp for schedule(dynamic) nowait
                    for (int j = 0; j < 4; ++j) {
                    }
#pragma omp single nowait
                    {}
                }
            }
            if (omp_get_cancellation()) {
#pragma omp barrier
            }
#pragma omp atomic
            passed += 1;
        }
        int members = 0;
#pragma omp parallel reduction(+ : members)
        {
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 20; ++i) {
            }
#pragma omp barrier
            members += 1;
        }
        ends += members == threads;
    }
    printf("barriers: %d passed, %d regions whole\n", passed, ends);
}

static void points(void) {
    int cancelled = 0;
    const int threads = omp_get_max_threads();
#pragma omp parallel
    {
        if (omp_get_thread_num() == threads - 1) {
#pragma omp atomic
            cancelled += 1;
#pragma omp cancel parallel
        }
        while (omp_get_cancellation()) {
#pragma omp cancellation point parallel
        }
    }
    printf("points: %d\n", cancelled);
}

/// As many tasks as threads: all wait for the one that cancels.
static void groups(void) {
    int cancels = 0, behind = 0, late = 0;
    const int threads = omp_get_max_threads();
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup
        {
            for (int t = 0; t < threads; ++t) {
#pragma omp task shared(cancels, behind) firstprivate(t)
                {
                    if (t == threads - 1) {
#pragma omp atomic
                        cancels += 1;
#pragma omp cancel taskgroup
                    }
                    while (omp_get_cancellation()) {
#pragma omp cancellation point taskgroup
                    }
#pragma omp atomic
                    behind += 1;
                }
            }
        }
        if (!omp_get_cancellation()) behind = 0;
            // Behind it tasks run again.
#pragma omp taskgroup
        for (int t = 0; t < 50; ++t) {
#pragma omp task shared(late)
            {
#pragma omp cancellation point taskgroup
#pragma omp atomic
                late += 1;
            }
        }
    }
    printf("groups: %d cancelled, %d went on, %d later\n", cancels, behind, late);
}

/// Tasks that have not begun are left out, also those of tasks; others' groups are not touched.
static void search(void) {
    int started = 0, spared = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task shared(spared)
        {
#pragma omp taskgroup
            for (int i = 0; i < 30; ++i) {
#pragma omp task shared(spared)
                {
                    usleep(100);
#pragma omp atomic
                    spared += 1;
                }
            }
        }
#pragma omp taskgroup
        for (int i = 0; i < 4000; ++i) {
#pragma omp task shared(started) firstprivate(i)
            {
#pragma omp atomic
                started += 1;
                if (i == 20) {
#pragma omp cancel taskgroup
                }
                usleep(20);
            }
        }
    }
    printf("search: %s, %d spared\n",
           !omp_get_cancellation() ? (started == 4000 ? "all" : "wrong")
           : started < 4000        ? "some"
                                   : "all",
           spared);
}

static void inner(void) {
    int ended = 0, alone = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < 20; ++round) {
#pragma omp parallel reduction(+ : ended)
        {
#pragma omp parallel num_threads(3)
            {
                if (omp_get_thread_num() == 1) {
#pragma omp cancel parallel
                }
                while (omp_get_cancellation()) {
#pragma omp cancellation point parallel
                }
            }
            ended += 1;
#pragma omp barrier
        }
    }
#pragma omp parallel num_threads(1)
    {
        alone += 1;
#pragma omp cancel parallel
        alone += 10;
    }
    printf("inner: %d ended, alone %d\n", ended, alone);
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 40;
    printf("cancellation %d\n", omp_get_cancellation());
    loops();
    sections();
    barriers(rounds);
    points();
    groups();
    search();
    inner();
    return 0;
}
