// SPDX-License-Identifier: BSD-3-Clause
// An asynchronous copy with depend objects waits for what they name, and for nothing else: a
// sibling that the copy does not depend on is complete only once the copy is done (newer_gcc.py).
#include <omp.h>
#include <stdio.h>

// Neither omp.h here has it.
int omp_target_memcpy_async(void*, const void*, size_t, size_t, size_t, int, int, int,
                            omp_depend_t*);

static int copy_of(int objects, int rounds) {
    int right = 0;
    for (int i = 0; i < rounds; ++i) {
        int from = 0, second = 0, to = -1, begun = 0;
#pragma omp parallel shared(from, second, to, begun)
#pragma omp single
        {
            omp_event_handle_t event;
            omp_depend_t on[2];
#pragma omp depobj(on[0]) depend(in : from)
#pragma omp depobj(on[1]) depend(inout : second)
#pragma omp task depend(out : from)
            {
                const double until = omp_get_wtime() + 2e-3;
                while (omp_get_wtime() < until) {
                }
                from = 40 + i;
            }
#pragma omp task depend(out : second)
            second = 1;
#pragma omp task detach(event) shared(begun)
            begun = 1;  // gcc leaves out a task without a body, and its event.
            const int status =
                omp_target_memcpy_async(&to, &from, sizeof to, 0, 0, omp_get_initial_device(),
                                        omp_get_initial_device(), objects, on);
            right += status == 0 && to == 40 + i && (objects == 1 || second == 1);
            omp_fulfill_event(event);
#pragma omp taskwait
#pragma omp depobj(on[0]) destroy
#pragma omp depobj(on[1]) destroy
        }
        right -= !begun;
    }
    return right;
}

int main(void) {
    const int one = copy_of(1, 5), two = copy_of(2, 5);
    printf("copies %d %d\n", one, two);
    return 0;
}
