// SPDX-License-Identifier: BSD-3-Clause
// Target regions and leagues where there is no device: the host runs them.
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "verdict.h"

enum { count = 4000 };
static long values[count];
#pragma omp declare target
static long on_device = 7;
static long twice(long x) { return 2 * x; }
#pragma omp end declare target

static void targets(void) {
    long sum = 0, given = 5, array[16];
    for (int i = 0; i < 16; i++) array[i] = i;
#pragma omp target map(tofrom : sum) firstprivate(given, array)
    {
        given = twice(given);
        array[3] = 100;
        sum = given + array[3] + on_device + omp_is_initial_device();
    }
    check_equal("map and firstprivate", sum * 1000 + given * 100 + array[3], 118503);

    memset(values, 0, sizeof values);
#pragma omp target teams distribute parallel for map(tofrom : values)
    for (int i = 0; i < count; i++) values[i] += i;
#pragma omp target data map(tofrom : values)
    {
#pragma omp target parallel for
        for (int i = 0; i < count; i++) values[i] += i;
#pragma omp target update from(values)
    }
    long total = 0;
#pragma omp target parallel for reduction(+ : total) map(tofrom : total)
    for (int i = 0; i < count; i++) total += values[i];
    check_equal("combined constructs", total, (long)count * (count - 1));

#pragma omp target enter data map(to : values)
#pragma omp target exit data map(from : values)
    long* pointer = omp_target_alloc(64 * sizeof(long), omp_get_default_device());
#pragma omp target is_device_ptr(pointer)
    for (int i = 0; i < 64; i++) pointer[i] = i;
    check_equal("device pointers", pointer[63] + omp_get_num_devices(), 63);
    omp_target_free(pointer, omp_get_default_device());
}

static void in_regions(void) {
    long order = 0, threads = 0, steps[6] = {0};
#pragma omp parallel
#pragma omp single
    {
#pragma omp target nowait depend(out : order) map(tofrom : order)
        order = 1;
#pragma omp target nowait depend(inout : order) map(tofrom : order)
        order = order * 10 + 2;
#pragma omp target update to(order) depend(inout : order)
#pragma omp target depend(inout : order) map(tofrom : order)
        order = order * 10 + 3;
        for (int i = 0; i < 6; i++)
#pragma omp target nowait map(tofrom : steps) firstprivate(i)
            steps[i] = i;
#pragma omp taskwait
    }
    check_equal("an order of target regions", order, 123);
    check_equal("regions of their own", steps[1] + steps[5], 6);
#pragma omp parallel
    {
#pragma omp target map(tofrom : threads)
        {
            const int alone = omp_get_num_threads() == 1 && omp_get_thread_num() == 0;
#pragma omp atomic
            threads += alone;
        }
    }
    check_equal("a target region is one thread's", threads, omp_get_max_threads());
}

static void leagues(void) {
    long seen[8] = {0}, sum = 0;
#pragma omp teams num_teams(4) thread_limit(2) shared(seen)
    {
        const int team = omp_get_team_num();
        seen[team] += 10 + omp_get_num_teams();
#pragma omp parallel
        if (omp_get_team_num() != team || omp_get_num_threads() > 2) seen[7] = 1;
    }
    check_equal("teams", seen[0] + seen[3] + seen[7], 28);
#pragma omp teams distribute parallel for reduction(+ : sum)
    for (int i = 0; i < count; i++) sum += i;
    check_equal("distribute", sum, (long)count * (count - 1) / 2);
    long league = 0;
#pragma omp target teams num_teams(3) map(tofrom : league)
    league = league * 10 + omp_get_team_num() + 1;
    check_equal("a league in a target region", league, 123);
    check_equal("behind them", omp_get_num_teams() * 10 + omp_get_team_num(), 10);
}

int main(void) {
    targets();
    in_regions();
    leagues();
    return wrong;
}
