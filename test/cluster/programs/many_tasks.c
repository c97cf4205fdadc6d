// SPDX-License-Identifier: BSD-3-Clause
// Tasks that wait for one event, and then are executed: as many as the argument says. The node they
// wait on keeps less than 2 KiB for each.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int gate;

static long most_kib(void) {
    FILE* const status = fopen("/proc/self/status", "r");
    char line[128];
    long kib = 0;
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
    if (status != NULL) fclose(status);
    return kib;
}

int main(int arguments, char** words) {
    const int many = arguments > 1 ? atoi(words[1]) : 1000000;
    static long executed, early;
    static int opened;
    long growth = 0;
    const long before = most_kib();
#pragma omp parallel
#pragma omp single
    {
        omp_event_handle_t event;
#pragma omp task detach(event) depend(out : gate)
        {}
        for (int i = 0; i < many; ++i) {
#pragma omp task depend(in : gate) shared(executed, early, opened)
            {
                if (!opened) {
#pragma omp atomic
                    early++;
                }
#pragma omp atomic
                executed++;
            }
        }
        growth = most_kib() - before;
        opened = 1;
        omp_fulfill_event(event);
    }
    const int right = executed == many && early == 0 && growth < 2L * many + 16384;
    printf("%s: %ld executed, %ld too early, %s\n", right ? "right" : "WRONG", executed, early,
           growth < 2L * many + 16384 ? "less than 2 KiB each" : "more than 2 KiB each");
    if (arguments < 2) fprintf(stderr, "%ld MiB for %d tasks that wait\n", growth / 1024, many);
    return !right;
}
