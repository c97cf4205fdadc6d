// SPDX-License-Identifier: BSD-3-Clause
// Role: parallel regions before main, in a constructor of a library and in one of the program, and
// behind it: they have as many threads as others, and all nodes see what they leave.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

extern int early_threads, early_wanted, early_nested, early_tasks, early_values[4000];
extern long early_sum, early_sections;
static int own_threads, last_threads;

__attribute__((constructor)) static void own(void) {
#pragma omp parallel
#pragma omp single
    own_threads = omp_get_num_threads();
}

static void at_end(void) {
#pragma omp parallel
#pragma omp single
    last_threads = omp_get_num_threads();
    printf("at the end %s\n", last_threads == own_threads ? "as many" : "others");
}

int main(void) {
    atexit(at_end);
    int threads = 0, wrong = 0;
#pragma omp parallel reduction(+ : wrong)
    {
#pragma omp single
        threads = omp_get_num_threads();
        for (int i = 0; i < 4000; ++i) wrong += early_values[i] != i;
        wrong += early_sum != 4000L * 3999 / 2;
    }
    printf("library %s, program %s, %d wrong\n", early_threads == threads ? "as many" : "others",
           own_threads == threads ? "as many" : "others", wrong);
    printf("%s %d %ld %d\n", early_wanted == threads ? "wanted" : "not wanted", early_nested,
           early_sections, early_tasks);
    return 0;
}
