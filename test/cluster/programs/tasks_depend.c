// SPDX-License-Identifier: BSD-3-Clause
// Tasks in an order: dependences of all kinds, detached tasks; taskloops and task reductions.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

enum { side = 14, blocks = 6, block = 24 };
static long grid[side][side];
static double matrix[blocks][blocks][block][block];

static void chains(void) {
    int value = 0, seen[40];
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 40; i++)
#pragma omp task depend(inout : value) shared(seen) firstprivate(i)
    {
        compute(2000);
        seen[i] = value++;
    }
    int good = 0;
    for (int i = 0; i < 40; i++) good += seen[i] == i;
    check_equal("inout is an order", good, 40);

#pragma omp parallel
#pragma omp single
    for (int i = 1; i < side; i++)
        for (int j = 1; j < side; j++)
#pragma omp task depend(in : grid[i - 1][j], grid[i][j - 1]) depend(out : grid[i][j])
        {
            compute(1500);
            grid[i][j] = i == 1 && j == 1 ? 1 : grid[i - 1][j] + grid[i][j - 1];
        }
    check_equal("a wave front", grid[side - 1][side - 1], 2704156);

    int source = 0;
    long right = 0;
#pragma omp parallel
#pragma omp single
    for (int round = 0; round < 12; round++) {
#pragma omp task depend(out : source) firstprivate(round)
        {
            compute(1000);
            source = round;
        }
        for (int k = 0; k < 6; k++)
#pragma omp task depend(in : source) shared(right) firstprivate(round)
        {
            const int here = source;
            compute(2000);
#pragma omp atomic
            right += here == round;
        }
    }
    check_equal("readers between writers", right, 72);

    long total = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 30; i++)
#pragma omp task depend(mutexinoutset : total) firstprivate(i)
    {
        const long before = total;
        compute(1000);
        total = before + i;
    }
    check_equal("mutexinoutset excludes", total, 435);
}

static void objects(void) {
    int values[6] = {0}, copies = 0;
    omp_depend_t object;
#pragma omp depobj(object) depend(inout : values[0])
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < 10; i++)
#pragma omp task depend(depobj : object)
        {
            compute(1000);
            values[0]++;
        }
#pragma omp task depend(iterator(k = 1 : 6), out : values[k])
        {
            compute(20000);
            for (int k = 1; k < 6; k++) values[k] = k;
        }
#pragma omp task depend(iterator(k = 0 : 6), in : values[k]) shared(copies)
        for (int k = 0; k < 6; k++) copies += values[k];
    }
#pragma omp depobj(object) destroy
    check_equal("depend objects and iterators", copies, 25);

    int first = 0, second = 0, third = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : first)
        {
            compute(30000);
            first = 7;
        }
#pragma omp taskwait depend(in : first)
        second = first;
#pragma omp task depend(out : third)
        {
            compute(30000);
            third = 5;
        }
#pragma omp task if (0) depend(inout : third)
        third *= 3;
        second += third;
    }
    check_equal("taskwait depend; an undeferred task waits", second, 22);
}

static void events(void) {
    int steps[20] = {0}, good = 0;
#pragma omp parallel
#pragma omp single
    {
        omp_event_handle_t handles[20];
        for (int i = 0; i < 20; i++) {
            omp_event_handle_t event;
#pragma omp task detach(event) depend(out : steps[i]) shared(steps) firstprivate(i)
            {
                compute(500);
                steps[i] = 1;
            }
            handles[i] = event;
#pragma omp task depend(inout : steps[i]) shared(steps, good) firstprivate(i)
            {
#pragma omp atomic
                good += steps[i] == 1;
            }
        }
        for (int i = 19; i >= 0; i--) {
            omp_event_handle_t event = handles[i];
#pragma omp task firstprivate(event)
            {
                compute(2000);
                omp_fulfill_event(event);
            }
        }
#pragma omp taskwait
        check_equal("detached tasks", good, 20);
    }
}

static void lu(void) {
    for (int i = 0; i < blocks; i++)
        for (int j = 0; j < blocks; j++)
            for (int a = 0; a < block; a++)
                for (int b = 0; b < block; b++)
                    matrix[i][j][a][b] = (i == j && a == b) ? 300.0 : ((i + j + a + b) % 7) / 8.0;
#pragma omp parallel
#pragma omp single
    for (int k = 0; k < blocks; k++) {
#pragma omp task depend(inout : matrix[k][k])
        for (int p = 0; p < block; p++)
            for (int a = p + 1; a < block; a++) {
                matrix[k][k][a][p] /= matrix[k][k][p][p];
                for (int b = p + 1; b < block; b++)
                    matrix[k][k][a][b] -= matrix[k][k][a][p] * matrix[k][k][p][b];
            }
        for (int j = k + 1; j < blocks; j++) {
#pragma omp task depend(in : matrix[k][k]) depend(inout : matrix[k][j])
            for (int p = 0; p < block; p++)
                for (int a = p + 1; a < block; a++)
                    for (int b = 0; b < block; b++)
                        matrix[k][j][a][b] -= matrix[k][k][a][p] * matrix[k][j][p][b];
#pragma omp task depend(in : matrix[k][k]) depend(inout : matrix[j][k])
            for (int p = 0; p < block; p++)
                for (int a = 0; a < block; a++) {
                    matrix[j][k][a][p] /= matrix[k][k][p][p];
                    for (int b = p + 1; b < block; b++)
                        matrix[j][k][a][b] -= matrix[j][k][a][p] * matrix[k][k][p][b];
                }
        }
        for (int i = k + 1; i < blocks; i++)
            for (int j = k + 1; j < blocks; j++)
#pragma omp task depend(in : matrix[i][k], matrix[k][j]) depend(inout : matrix[i][j])
                for (int a = 0; a < block; a++)
                    for (int b = 0; b < block; b++)
                        for (int p = 0; p < block; p++)
                            matrix[i][j][a][b] -= matrix[i][k][a][p] * matrix[k][j][p][b];
    }
    double trace = 0;
    for (int i = 0; i < blocks; i++)
        for (int a = 0; a < block; a++) trace += matrix[i][i][a][a];
    printf("LU %.9f\n", trace);
}

static int hits[3000];

static void loops(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(7)
        for (int i = 0; i < 1000; i++) hits[i]++;
#pragma omp taskloop num_tasks(11)
        for (int i = 1999; i >= 1000; i -= 1) hits[i]++;
#pragma omp taskloop collapse(2)
        for (unsigned long long i = 0; i < 10; i++)
            for (unsigned long long j = 0; j < 100; j++) hits[2000 + i * 100 + j]++;
#pragma omp taskloop nogroup
        for (int i = 0; i < 3000; i += 3) {
#pragma omp atomic
            hits[i]++;
        }
    }
    long good = 0;
    for (int i = 0; i < 3000; i++) good += hits[i] == 1 + (i % 3 == 0);
    check_equal("taskloops", good, 3000);

    long sum = 0, product = 1;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop num_tasks(13) reduction(+ : sum)
        for (int i = 0; i < 1000; i++) {
            compute(50);
            sum += i;
        }
    }
    check_equal("taskloop reduction", sum, 499500);
    sum = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup task_reduction(+ : sum) task_reduction(* : product)
        {
            for (int i = 0; i < 60; i++)
#pragma omp task in_reduction(+ : sum) firstprivate(i)
            {
                compute(1500);
                sum += i;
                if (i % 20 == 0) {
#pragma omp task in_reduction(* : product)
                    product *= 3;
                }
            }
#pragma omp taskloop in_reduction(+ : sum)
            for (int i = 0; i < 10; i++) sum += 100;
        }
    }
    check_equal("task reductions", sum * 100 + product, 277027);
}

int main(void) {
    chains();
    objects();
    events();
    lu();
    loops();
    return wrong;
}
