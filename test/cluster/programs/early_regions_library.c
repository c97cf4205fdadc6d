// SPDX-License-Identifier: BSD-3-Clause
// Role: a library whose constructor and destructor run parallel regions (early_regions.c).
#include <omp.h>
#include <stdio.h>

enum { length = 4000 };
int early_threads, early_wanted, early_nested, early_tasks, early_values[length];
long early_sum, early_sections;

static void compute(void) {
    early_threads = early_nested = early_tasks = 0;
    early_sum = early_sections = 0;
    early_wanted = omp_get_max_threads();
#pragma omp parallel
    {
#pragma omp single
        early_threads = omp_get_num_threads();
#pragma omp for schedule(dynamic, 7) reduction(+ : early_sum)
        for (int i = 0; i < length; ++i) {
            early_values[i] += i;
            early_sum += early_values[i];
        }
#pragma omp sections reduction(+ : early_sections)
        {
            early_sections += 1;
#pragma omp section
            early_sections += 2;
        }
#pragma omp single
        for (int i = 0; i < 20; ++i) {
#pragma omp task
            {
#pragma omp atomic
                ++early_tasks;
            }
        }
    }
#pragma omp parallel num_threads(3)
    {
#pragma omp critical
        ++early_nested;
    }
}

__attribute__((constructor)) static void first(void) { compute(); }

__attribute__((destructor)) static void last(void) {
    compute();
    printf("library at the end: %s %d %ld %ld %d\n",
           early_threads == early_wanted ? "all threads" : "not all threads", early_nested,
           early_sum, early_sections, early_tasks);
}
