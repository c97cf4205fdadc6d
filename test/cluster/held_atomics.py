#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Atomics in rows on blocks that all nodes use (docs/protocol.md#held): sums are right, what was written before
an atomic is there behind it, and rows are published once.

    held_atomics.py --hiroba build/bin/hiroba [--only rows] [--nodes 4]
"""
import re
import sys

from process_runs import main

# Each thread counts in rows of random length on counters that lie scattered over some pages, and writes its progress
# before it ticks; a thread that reads another's tick by an atomic must find that progress. The ticks lie beside the
# counters, and so does a word that each thread writes plainly.
PROGRAM = """
    enum { rows = 6000, pages = 8, words = 512, threads_max = 32 };
    static long count[pages][words] __attribute__((aligned(4096)));
    static long progress[threads_max][words] __attribute__((aligned(4096)));
    static unsigned next(unsigned* seed) { return *seed = *seed * 1664525u + 1013904223u, *seed >> 16; }
    int main(void) {
        const int threads = omp_get_max_threads();
        long early = 0, made = 0;
    #pragma omp parallel reduction(+ : early, made)
        {
            const int me = omp_get_thread_num();
            unsigned seed = me + 1;
            long* const ticks = count[me % pages] + 256;
            for (int row = 1; row <= rows; ++row) {
                long* const at = count[next(&seed) % pages];
                const int length = 1 + next(&seed) % 40;
                for (int i = 0; i < length; ++i) __sync_fetch_and_add(&at[next(&seed) % 128], 1);
                made += length;
                count[me % pages][300 + me] = row;
                progress[me][0] = row;
                __sync_fetch_and_add(&ticks[me], 1);
                if (row % 16 == 0) {
                    const int other = next(&seed) % threads;
                    const long tick = __sync_fetch_and_add(&count[other % pages][256 + other], 0);
                    early += progress[other][0] < tick;
                }
                if (row % 1500 == 0) {
    #pragma omp barrier
                    for (int other = 0; other < threads; ++other)
                        early += progress[other][0] != row || count[other % pages][300 + other] != row;
    #pragma omp barrier
                }
            }
        }
        long sum = 0;
        for (int page = 0; page < pages; ++page)
            for (int i = 0; i < 128; ++i) sum += count[page][i];
        printf("%ld %ld\\n", sum - made, early);
    }"""


def row(err, name):
    """A counter's values, one for each node."""
    found = re.search(rf"^{name}\s+(.*)$", err, re.MULTILINE)
    assert found, f"no {name}: {err[-600:]}"
    return [int(count) for count in found.group(1).split()][:-1]


def run(bench, **setting):
    program = bench.build("rows", PROGRAM, "-fopenmp", "-O2")
    status, out, err = bench.run(program, HIROBA_STATS="1", OMP_NUM_THREADS=str(2 * bench.nodes), **setting)
    assert status == 0, f"status {status}: {err[-600:]}"
    assert out == "0 0\n", f"{out!r}: {err[-600:]}"
    assert "write-write race" not in err, err[:600]
    held, atomics, notices = row(err, "held"), row(err, "atomics"), row(err, "notices_made")
    assert len(atomics) == bench.nodes and all(atomics), f"not every node took part: {atomics} atomics"
    return held, atomics, notices


def rows(bench):
    """With both engines: every node holds blocks, and tells of fewer versions than it makes atomics."""
    for engine in ("uffd", "mprotect"):
        held, atomics, notices = run(bench, HIROBA_FAULT_ENGINE=engine)
        assert all(held), f"{engine}: {held} held"
        assert all(told < count for told, count in zip(notices, atomics)), f"{engine}: {notices} of {atomics}"


def over_udp(bench):
    held, _, _ = run(bench, HIROBA_PROVIDER="udp")
    assert any(held), f"{held} held"


def nobody_holds(bench):
    held, atomics, notices = run(bench, HIROBA_EXCLUSIVE="off")
    assert not any(held), f"{held} held"
    assert all(told >= count for told, count in zip(notices, atomics)), f"{notices} of {atomics}"


CASES = [rows, over_udp, nobody_holds]

if __name__ == "__main__":
    sys.exit(main(CASES))
