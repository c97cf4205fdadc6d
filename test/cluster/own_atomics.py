#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Atomics on blocks that are one node's own (docs/protocol.md#exclusive): two threads of a node count in
them at once, signal handlers of the program come in between, and the other node takes them away.

    own_atomics.py --hiroba build/bin/hiroba [--only counts] [--nodes 4]
"""
import re
import sys

from process_runs import main

# A page of counters for each node, which its threads add to; in every eighth round each thread adds to the
# next node's, too. Words that a release has to tell of are written
# before and behind them.
PROGRAM = """
    #include <signal.h>
    #include <sys/time.h>
    enum { rounds = 24, own = 20000, others = 50, words = 512 };
    static long count[16][words] __attribute__((aligned(4096)));
    static long told[16][words] __attribute__((aligned(4096)));
    static volatile sig_atomic_t handlers;
    static void on_signal(int number) { (void)number; handlers = handlers + 1; }
    int main(void) {
        const int threads = omp_get_max_threads(), nodes = threads / 2;
        long wrong = 0;
        WITH_SIGNALS
    #pragma omp parallel reduction(+ : wrong)
        {
            const int me = omp_get_thread_num(), node = me / 2, next = (node + 1) % nodes;
            for (int round = 0; round < rounds; ++round) {
                if (me % 2 == 0) told[node][0] = round;
                for (int i = 0; i < own; ++i) {
    #pragma omp atomic
                    count[node][i % 64] += 1;
                }
                if (me % 2 == 0) told[node][1] = round;
                for (int i = 0; round % 8 == 7 && i < others; ++i) {
    #pragma omp atomic
                    count[next][i % 64] += 1;
                }
    #pragma omp barrier
                wrong += told[next][0] != round || told[next][1] != round;
    #pragma omp barrier
            }
        }
        long sum = 0;
        for (int i = 0; i < nodes; ++i)
            for (int k = 0; k < words; ++k) sum += count[i][k];
        const long right = threads * (rounds * (long)own + rounds / 8 * (long)others);
        printf("%ld %ld %d\\n", sum - right, wrong, AT_END);
    }"""
PLAIN = PROGRAM.replace("WITH_SIGNALS", "").replace("AT_END", "0")
SIGNALS = PROGRAM.replace("WITH_SIGNALS", """
        struct sigaction action = {.sa_handler = on_signal};
        sigaction(SIGPROF, &action, 0);
        struct itimerval timer = {{0, 1000}, {0, 1000}};
        setitimer(ITIMER_PROF, &timer, 0);""").replace("AT_END", "handlers == 0")


def row(err, name):
    """A counter's values, one for each node."""
    found = re.search(rf"^{name}\s+(.*)$", err, re.MULTILINE)
    assert found, f"no {name}: {err[-600:]}"
    return [int(count) for count in found.group(1).split()][:-1]


def run(bench, program, **setting):
    status, out, err = bench.run(program, HIROBA_STATS="1", OMP_NUM_THREADS=str(2 * bench.nodes), **setting)
    assert status == 0, f"status {status}: {err[-600:]}"
    assert out == "0 0 0\n", f"{out!r}: {err[-600:]}"
    assert "write-write race" not in err, err[:600]
    made, atomics = row(err, "made_exclusive"), row(err, "atomics")
    assert len(atomics) == bench.nodes and all(atomics), f"not every node took part: {atomics} atomics"
    return made, atomics, row(err, "notices_made")


def counts(bench):
    """Sums are right with both engines, each atomic is counted, and most tell nobody."""
    program = bench.build("counts", PLAIN, "-fopenmp", "-O2")
    each = 2 * (24 * 20000 + 3 * 50)  # of a node
    for engine in ("uffd", "mprotect"):
        # A thread that is late to leave a barrier has not told all nodes before the next atomic, on a full machine.
        for _ in range(8):
            made, atomics, notices = run(bench, program, HIROBA_FAULT_ENGINE=engine)
            assert all(each <= count <= each + 1000 for count in atomics), f"{engine}: {atomics} atomics of {each}"
            if all(made) and all(count < each / 2 for count in notices):
                break
        else:
            raise AssertionError(f"{engine}: {made} blocks exclusive, {notices} notices of {each}")


def nobody_alone(bench):
    """Where no block is ever exclusive, each is told of."""
    program = bench.build("counts", PLAIN, "-fopenmp", "-O2")
    _, atomics, notices = run(bench, program, HIROBA_EXCLUSIVE="off")
    assert all(told >= count for count, told in zip(atomics, notices)), f"{notices} notices of {atomics}"


def over_udp(bench):
    program = bench.build("counts", PLAIN, "-fopenmp", "-O2")
    run(bench, program, HIROBA_PROVIDER="udp")


def signals(bench):
    """Handlers of the program run outside of the sections."""
    program = bench.build("signals", SIGNALS, "-fopenmp", "-O2")
    run(bench, program)


CASES = [counts, nobody_alone, over_udp, signals]

if __name__ == "__main__":
    sys.exit(main(CASES))
