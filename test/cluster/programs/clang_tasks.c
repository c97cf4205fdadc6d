// SPDX-License-Identifier: BSD-3-Clause
// Tasks as clang compiles them, by every clause: what is copied and what is shared, which task
// waits for which, tasks executed at once, those that go on later, taskloops, events. Right for any
// number of threads.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

static long fibonacci(int n) {
    if (n < 2) return n;
    long a, b;
#pragma omp task shared(a) firstprivate(n) if (n > 8)
    a = fibonacci(n - 1);
#pragma omp task shared(b) firstprivate(n) final(n < 6) mergeable
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

struct wide {
    char text[200];
    int number;
};

static void data(void) {
    long result = 0, sum = 0;
    struct wide one;
    memset(&one, 'x', sizeof one);
    one.number = 3;
    int list[6] = {1, 2, 3, 4, 5, 6};
#pragma omp parallel
#pragma omp single
    {
        result = fibonacci(16);
        for (int i = 0; i < 100; i++)
#pragma omp task firstprivate(i, one, list) shared(sum) priority(i % 3)
        {
            compute(2000);
            one.number += i;
            long add = one.number + list[i % 6] + one.text[199] - 'x';
#pragma omp atomic
            sum += add;
        }
        one.number = 1000;
        list[0] = 1000;
    }
    check("fibonacci", result == 987);
    check("firstprivate and shared", sum == 300 + 4950 + 16 * 21 + 10);
    check("the creator's own", one.number == 1000 && list[0] == 1000);
}

static void orders(void) {
    enum { blocks = 12 };
    int chain = 1, cells[blocks] = {0}, right = 1, read = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int i = 1; i <= 10; i++)
#pragma omp task depend(inout : chain) firstprivate(i)
        {
            compute(500);
            chain = chain * i % 10007;
        }
        for (int step = 0; step < 5; step++)
            for (int i = 0; i < blocks; i++) {
#pragma omp task depend(in                                                     \
                        : cells[(i + blocks - 1) % blocks]) depend(out         \
                                                                   : cells[i]) \
    firstprivate(i, step)
                {
                    compute(300);
                    cells[i] = cells[i] * 3 % 1009 + cells[(i + blocks - 1) % blocks] + i + step;
                }
            }
        omp_depend_t object;
#pragma omp depobj(object) depend(inout : read)
#pragma omp task depend(depobj : object)
        {
            compute(3000);
            read = 5;
        }
#pragma omp task depend(iterator(int k = 0 : 3), in : cells[k]) depend(in : read)
        right &= read == 5;
#pragma omp depobj(object) destroy
        int together = 0;
        for (int i = 0; i < 20; i++)
#pragma omp task depend(mutexinoutset : together) shared(together)
            together++;
#pragma omp task depend(in : together) shared(together, right)
        right &= together == 20;
#pragma omp taskwait
    }
    int chain_wanted = 1, cells_wanted[blocks] = {0};
    for (int i = 1; i <= 10; i++) chain_wanted = chain_wanted * i % 10007;
    for (int step = 0; step < 5; step++)
        for (int i = 0; i < blocks; i++)
            cells_wanted[i] =
                cells_wanted[i] * 3 % 1009 + cells_wanted[(i + blocks - 1) % blocks] + i + step;
    check("a chain", chain == chain_wanted);
    check("a ring", memcmp(cells, cells_wanted, sizeof cells) == 0);
    check("objects, iterators, sets", right);
}

static void at_once(void) {
    int value = 0, steps = 0, inside = -1, final_inside = -1;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task shared(value) depend(out : value)
        {
            compute(100000);
            value = 10;
        }
#pragma omp task if (0) depend(inout : value) shared(value)
        value++;
        steps = value;
#pragma omp task if (0) final(1) shared(inside, final_inside)
        {
            inside = omp_in_final();
#pragma omp task shared(final_inside)
            final_inside = omp_in_final();
        }
#pragma omp task if (0) shared(steps)
        {
            // Children of a task that is executed at once, and a group of theirs.
#pragma omp taskgroup
            for (int i = 0; i < 5; i++)
#pragma omp task shared(steps)
            {
                compute(1000);
#pragma omp atomic
                steps += 100;
            }
        }
#pragma omp task depend(out : value) shared(value)
        {
            compute(100000);
            value = 50;
        }
#pragma omp taskwait depend(in : value)
        steps += value * 1000;
    }
    check("if(0)", value == 50 && steps == 11 + 500 + 50000);
    check("final", inside == 1 && final_inside == 1);
}

static void later(void) {
    long sum = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < 30; i++)
#pragma omp task untied firstprivate(i) shared(sum)
        {
            long mine = i;
            for (int k = 0; k < 3; k++) {
#pragma omp taskyield
                mine += 100;
            }
            long child = 0;
#pragma omp task shared(child)
            {
                compute(1000);
                child = 1000;
            }
#pragma omp taskwait
            mine += child;
#pragma omp atomic
            sum += mine;
        }
    }
    check("untied", sum == 435 + 30 * 1300);

    omp_event_handle_t events[8];
    int before = 0, after = 0, seen = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < 8; i++) {
            omp_event_handle_t event;
#pragma omp task detach(event) depend(out : events[i]) shared(before)
            {
#pragma omp atomic
                before++;
            }
            events[i] = event;
#pragma omp task firstprivate(event) shared(after)
            {
                compute(3000);
#pragma omp atomic
                after++;
                omp_fulfill_event(event);
            }
#pragma omp task depend(in : events[i]) shared(seen, after)
            {
                int now;
#pragma omp atomic read
                now = after;
                if (now > 0) {
#pragma omp atomic
                    seen++;
                }
            }
        }
#pragma omp taskwait
    }
    check("detached", before == 8 && after == 8 && seen == 8);
}

static void loops(void) {
    static int hits[1000];
    int last = -1, right = 1;
    long total = 0, grains = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(7) shared(hits)
        for (int i = 0; i < 1000; i++) hits[i]++;
#pragma omp taskloop num_tasks(13) lastprivate(last)
        for (long i = 999; i >= 0; i--) {
            hits[i]++;
            last = (int)i;
        }
#pragma omp taskloop collapse(2) nogroup if (0)
        for (unsigned i = 0; i < 20; i++)
            for (unsigned j = 0; j < 50; j++) hits[i * 50 + j]++;
#pragma omp taskgroup
#pragma omp taskloop simd
        for (unsigned long i = 0; i < 1000; i++) hits[i]++;
#pragma omp taskloop reduction(+ : total) grainsize(20)
        for (int i = 0; i < 1000; i += 3) total += i;
#pragma omp taskloop firstprivate(grains) shared(right) num_tasks(5)
        for (int i = 0; i < 50; i++) {
            grains++;
            if (grains > 10) right = 0;
        }
#pragma omp taskloop
        for (int i = 5; i < 5; i++) right = 0;
    }
    for (int i = 0; i < 1000; i++) right &= hits[i] == 4;
    check("taskloops", right && last == 0);
    check("a taskloop's reduction", total == 333L * 334 / 2 * 3);
}

static void deep(void) {
    long leaves = 0;
#pragma omp parallel
#pragma omp master
#pragma omp taskgroup
    for (int i = 0; i < 40; i++)
#pragma omp task firstprivate(i)
        for (int j = 0; j < 10; j++)
#pragma omp task firstprivate(i, j)
        {
            compute(600000);  // Long enough for each node to come for some.
#pragma omp atomic
            leaves += i * j % 7;
        }
    long wanted = 0;
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < 10; j++) wanted += i * j % 7;
    check("a group waits for all that descends", leaves == wanted);
}

int main(void) {
    data();
    orders();
    at_once();
    later();
    loops();
    deep();
    return wrong;
}
