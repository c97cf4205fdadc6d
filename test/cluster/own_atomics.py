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
# next node's, too. Words that a release has to tell of are written before and behind them. With signals, all is
# done again until one came: the kernel counts a thread's time in ticks of 4 ms, and may see none of a short run.
PROGRAM = """
    #include <signal.h>
    #include <sys/time.h>
    enum { rounds = 24, own = 20000, others = 50, words = 512 };
    static long count[16][words] __attribute__((aligned(4096)));
    static long told[16][words] __attribute__((aligned(4096)));
    static volatile sig_atomic_t handlers;
    static void on_signal(int number) { (void)number; __atomic_fetch_add(&handlers, 1, __ATOMIC_RELAXED); }
    int main(void) {
        const int threads = omp_get_max_threads(), nodes = threads / 2;
        long wrong = 0, turns = 0;
        WITH_SIGNALS
        do
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
        while (++turns < 400 && AT_END);
        long sum = 0;
        for (int i = 0; i < nodes; ++i)
            for (int k = 0; k < words; ++k) sum += count[i][k];
        const long right = turns * threads * (rounds * (long)own + rounds / 8 * (long)others);
        printf("%ld %ld %d\\n", sum - right, wrong, AT_END);
    }"""
PLAIN = PROGRAM.replace("WITH_SIGNALS", "").replace("AT_END", "0")
SIGNALS = PROGRAM.replace("WITH_SIGNALS", """
        struct sigaction action = {.sa_handler = on_signal};
        sigaction(SIGPROF, &action, 0);
        struct itimerval timer = {{0, 1000}, {0, 1000}};
        setitimer(ITIMER_PROF, &timer, 0);""").replace("AT_END", "handlers == 0")


# Counts on a block of the thread's own node and on one of all, with something in every register meanwhile.
REGISTERS = """
    #ifdef __AVX__
    #define LOAD "vmovdqu"
    #define VECTOR "ymm"
    enum { vector_bytes = 32 };
    #else
    #define LOAD "movdqu"
    #define VECTOR "xmm"
    enum { vector_bytes = 16 };
    #endif
    #define EACH(line) ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\\n " line "\\n .endr\\n"
    #define EACH_R(line) ".irp n, 8, 9, 10, 11, 12, 13, 14, 15\\n " line "\\n .endr\\n"
    enum { rounds = 400, in_a_row = 500, words = 512 };
    static long own[16][words] __attribute__((aligned(4096)));
    static long shared[words] __attribute__((aligned(4096)));
    static int count(long* counter) {
        unsigned char from[16 * 32], to[16 * 32];
        long general = 0, n = in_a_row;
        for (int i = 0; i < (int)sizeof from; ++i) from[i] = (unsigned char)(i * 37 + (long)counter / 8);
        memset(to, 0, sizeof to);
        __asm__ volatile(
            EACH(LOAD " 32 * \\\\n(%[from]), %%" VECTOR "\\\\n")
            EACH_R("mov $0x1234500 + \\\\n, %%r\\\\n")
            "1: lock incq (%[counter])\\n dec %[n]\\n jnz 1b\\n"
            EACH(LOAD " %%" VECTOR "\\\\n, 32 * \\\\n(%[to])")
            EACH_R("sub $0x1234500 + \\\\n, %%r\\\\n\\n or %%r\\\\n, %[general]")
            : [n] "+&r"(n), [general] "+&r"(general)
            : [from] "r"(from), [to] "r"(to), [counter] "r"(counter)
            : "memory", "cc", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
              "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
        int wrong = general != 0;
        for (int i = 0; i < 16; ++i) wrong += memcmp(from + 32 * i, to + 32 * i, vector_bytes) != 0;
        return wrong;
    }
    int main(void) {
        const int threads = omp_get_max_threads();
        int wrong = 0;
    #pragma omp parallel reduction(+ : wrong)
        {
            const int node = omp_get_thread_num() / 2;
            for (int round = 0; round < rounds; ++round) {
                wrong += count(&own[node][round % 64]);
                wrong += count(&shared[round % 64]);
            }
        }
        long sum = 0;
        for (int k = 0; k < words; ++k) {
            sum += shared[k];
            for (int i = 0; i < 16; ++i) sum += own[i][k];
        }
        printf("%ld %d 0\\n", sum - 2l * threads * rounds * in_a_row, wrong);
    }"""


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


def registers(bench):
    """Registers keep what they hold, in programs with AVX and without, on own blocks and others."""
    for option in ("-mno-avx", "-mavx"):
        program = bench.build(f"registers{option}", REGISTERS, "-fopenmp", "-O2", option)
        made, atomics, notices = run(bench, program)
        assert sum(atomics) >= 4 * 400 * 500 * bench.nodes, f"{option}: {atomics} atomics"
        # Both ways were gone: most atomics tell nobody.
        assert any(made) and 0 < sum(notices) < sum(atomics) / 2, f"{option}: {made} exclusive, {notices} notices"


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


CASES = [registers, counts, nobody_alone, over_udp, signals]

if __name__ == "__main__":
    sys.exit(main(CASES))
