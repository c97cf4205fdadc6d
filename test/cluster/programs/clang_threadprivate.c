// SPDX-License-Identifier: BSD-3-Clause
// Threadprivate variables, in thread-local storage or, with -fno-openmp-use-tls, by the runtime:
// each thread's lasts from region to region, begins as the variable did, and main's is the
// variable.
#include <omp.h>
#include <stdio.h>

#include "verdict.h"

static long counter = 100;
static struct {
    double values[20];
    char name[8];
} record = {{0.5, 1.5}, "first"};
int shown = 1;
#pragma omp threadprivate(counter, record, shown)

int main(void) {
    int threads = 0, right = 0;
    long* addresses[64] = {0};
    // Before any region: the others do not get this.
    counter = 555;
#pragma omp parallel reduction(+ : right)
    {
        const int me = omp_get_thread_num();
#pragma omp master
        threads = omp_get_num_threads();
        right += counter == (me == 0 ? 555 : 100) && record.values[1] == 1.5 && shown == 1;
        counter = me;
        record.values[19] = me * 2.5;
        shown += me;
        addresses[me % 64] = &counter;
    }
    check("how they begin", right == threads);
    right = 0;
#pragma omp parallel reduction(+ : right)
    {
        const int me = omp_get_thread_num();
        right += counter == me && record.values[19] == me * 2.5 && shown == 1 + me;
        right += 10 * (&counter == addresses[me % 64]);
#pragma omp barrier
        // Another's, by its address.
        const int next = (me + 1) % threads;
        right += 100 * (*addresses[next] == next);
    }
    check("they last, and others may look", right == 111 * threads);
    counter = 77;
    record.name[0] = 'F';
    right = 0;
#pragma omp parallel copyin(counter, record) reduction(+ : right)
    right += counter == 77 && record.name[0] == 'F' && record.values[1] == 1.5;
    check("copyin", right == threads);
    right = 0;
#pragma omp parallel reduction(+ : right)
    {
#pragma omp single copyprivate(counter)
        counter = 31;
        right += counter == 31;
    }
    check("copyprivate", right == threads && counter == 31);
    return wrong;
}
