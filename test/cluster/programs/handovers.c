// SPDX-License-Identifier: BSD-3-Clause
// Threads that wake each other through pipes, sockets and event counters which main has made: a
// read that waits holds up no other, and what was written before is seen behind.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verdict.h"

enum { threads_max = 64, rounds = 20, words = 3000 };

static int out_of[threads_max], into[threads_max];
static long panel[threads_max][words];

static void make(const char* kind, int team) {
    for (int t = 0; t < team; ++t) {
        int ends[2] = {-1, -1};
        if (strcmp(kind, "pipes") == 0 && pipe(ends) != 0) abort();
        if (strcmp(kind, "sockets") == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
        if (strcmp(kind, "counters") == 0) ends[0] = ends[1] = eventfd(0, 0);
        out_of[t] = ends[0];
        into[t] = ends[1];
    }
}

static void end(int team) {
    for (int t = 0; t < team; ++t) {
        if (into[t] != out_of[t]) close(into[t]);
        close(out_of[t]);
    }
}

static long send_to(int thread, uint64_t token) {
    return write(into[thread], &token, sizeof token) != sizeof token;
}
static uint64_t receive(int thread) {
    uint64_t token = 0;
    return read(out_of[thread], &token, sizeof token) == sizeof token ? token : 0;
}

/// Each waits for the one before it, and checks the panel that that one has filled.
static long ring(int me, int team) {
    long failures = 0;
    for (long round = 1; round <= rounds; ++round) {
        const int before = (me + team - 1) % team;
        if (me != 0) {
            failures += receive(me) != (uint64_t)round;
            for (int i = 0; i < words; ++i) failures += panel[before][i] != round + i;
        }
        for (int i = 0; i < words; ++i) panel[me][i] = round + i;
        failures += send_to((me + 1) % team, (uint64_t)round);
        if (me != 0) continue;
        failures += receive(0) != (uint64_t)round;
        for (int i = 0; i < words; ++i) failures += panel[before][i] != round + i;
    }
    return failures;
}

static void in_turn(const char* kind) {
    const int team = team_size();
    long failures = 0;
    make(kind, team);
#pragma omp parallel reduction(+ : failures)
    failures += ring(omp_get_thread_num(), team);
    end(team);
    check_equal(kind, failures, 0);
}

/// All but one wait at once for what the last thread sends, backwards.
static void all_wait(void) {
    const int team = team_size();
    long failures = 0, sum = 0;
    make("pipes", team);
#pragma omp parallel reduction(+ : failures, sum)
    {
        const int me = omp_get_thread_num();
        if (me != team - 1) {
            sum += (long)receive(me);
        } else {
            usleep(20000);
            for (int t = team - 2; t >= 0; --t) failures += send_to(t, (uint64_t)t + 1);
        }
    }
    end(team);
    check_equal("each was woken", failures, 0);
    check_equal("by what was meant for it", sum, (long)team * (team - 1) / 2);
}

/// A closed end tells, too.
static void by_closing(void) {
    const int team = team_size();
    static long result;
    long right = 0;
    make("pipes", 1);
#pragma omp parallel reduction(+ : right)
    {
        const int me = omp_get_thread_num();
        char byte;
        if (me == 0) {
            result = 7;
            close(into[0]);
        }
        if (me == team - 1) right += read(out_of[0], &byte, 1) == 0 && result == 7;
    }
    close(out_of[0]);
    check_equal("the end was told", right, 1);
}

int main(void) {
    in_turn("pipes");
    in_turn("sockets");
    in_turn("counters");
    all_wait();
    by_closing();
    return wrong;
}
