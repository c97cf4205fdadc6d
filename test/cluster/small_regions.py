#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Small regions that stay on node 0 where they take less time there (HIROBA_REGIONS=auto, the default): their
teams and what they compute are as elsewhere, and a program with data of its threads has none.

    small_regions.py --hiroba build/bin/hiroba [--only mixed] [--nodes 4]
"""
import re
import sys

from process_runs import main

# Small regions with every kind of sharing, and now and then one that is not small and uses what
# they have written. `count` lies beside what both nodes write: on two nodes it costs.
PROGRAM = """
    enum { rounds = 3000, cells = 4096 };
    static long cell[cells], count;
    static int size_of_team, order_broken;
    static long small(int round, int threads) {
        long sum = 0;
        int last = -1;
    #pragma omp parallel num_threads(threads) reduction(+ : sum)
        {
            const int me = omp_get_thread_num();
            if (me == 0) size_of_team = omp_get_num_threads();
            for (int i = 0; i < 4; ++i) {
    #pragma omp atomic
                count += 1;
            }
    #pragma omp critical
            cell[round % cells] += me;
    #pragma omp barrier
    #pragma omp single
            cell[(round + 1) % cells] += 1;
    #pragma omp for schedule(dynamic, 2)
            for (int i = 0; i < 16; ++i) sum += i;
    #pragma omp for ordered
            for (int i = 0; i < 4; ++i) {
    #pragma omp ordered
                {
                    order_broken += last != i - 1;
                    last = i;
                }
            }
    #pragma omp masked
            {
    #pragma omp task shared(sum)
                sum += 1000;
    #pragma omp taskwait
            }
            DATA_OF_THREADS
        }
        return sum + size_of_team;
    }
    static long big(void) {
        long sum = 0;
    #pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < cells; ++i) {
            for (int k = 0; k < 200; ++k) sum += (cell[i] ^ k) & 1;
            cell[i] += 1;
        }
        return sum;
    }
    int main(int words, char** word) {
        long sum = 0;
        const int threads = words > 1 ? atoi(word[1]) : omp_get_max_threads();
        for (int round = 0; round < rounds; ++round) {
            sum += small(round, threads);
            if (round % 500 == 499) sum += big();
        }
        for (int i = 0; i < cells; ++i) sum += cell[i] * (i % 7 + 1);
        printf("%ld %ld %d\\n", sum, count, order_broken);
        AT_END
    }"""

KEPT = """
    static int kept;
    #pragma omp threadprivate(kept)
""" + PROGRAM.replace("DATA_OF_THREADS", "kept += 1;").replace("AT_END", """
        int equal = 0;
    #pragma omp parallel num_threads(threads) reduction(+ : equal)
        equal += kept == rounds;
        printf("%d\\n", equal == threads);
""")
PLAIN = PROGRAM.replace("DATA_OF_THREADS", "").replace("AT_END", "")


def took_part(err):
    """Whether each node had its part in regions."""
    row = re.search(r"^parallel_regions\s+(.*)$", err, re.MULTILINE)
    return row is not None and all(count.isdigit() and int(count) > 0
                                   for count in row.group(1).split())


def stayed(err):
    """How many regions node 0 kept; 0: the line is not there."""
    found = re.search(r"^regions_stayed\s+(\d+)", err, re.MULTILINE)
    return int(found.group(1)) if found else 0


def run(bench, *command, **setting):
    status, out, err = bench.run(*command, HIROBA_STATS="1", **setting)
    assert status == 0, f"status {status}: {err[-600:]}"
    assert "write-write race" not in err, err[:600]
    assert took_part(err), err[-600:]
    return out, stayed(err)


def some_stay(bench, right, *command, **setting):
    """The answer is right each time, and regions stay. On a full machine none may be small, so it is asked again."""
    kept = 0
    for _ in range(6):
        out, kept = run(bench, *command, HIROBA_REGIONS="auto", **setting)
        assert out == right, f"{command[1:]} {setting}: {out!r}, not {right!r}"
        if kept >= 8 or bench.nodes > 2:
            return
    raise AssertionError(f"{command[1:]} {setting}: {kept} regions stayed")


def mixed(bench):
    """Some stay, and nothing else is different; with more threads than nodes, too."""
    program = bench.build("mixed", PLAIN, "-fopenmp", "-O2")
    # Each engine with one of both sizes of team; with more nodes, at night, with both.
    for threads, engines in ((bench.nodes, ("uffd", "mprotect")), (2 * bench.nodes, ("mprotect", "uffd"))):
        right, kept = run(bench, program, str(threads))
        assert kept == 0, f"{kept} regions stayed unasked"
        for engine in engines[:1 if bench.nodes == 2 else 2]:
            some_stay(bench, right, program, str(threads), HIROBA_FAULT_ENGINE=engine)


def over_udp(bench):
    program = bench.build("mixed", PLAIN, "-fopenmp", "-O2")
    right, _ = run(bench, program)
    some_stay(bench, right, program, HIROBA_PROVIDER="udp")


def data_of_threads(bench):
    """A thread of one number is the same in each region, if it could tell."""
    program = bench.build("kept", KEPT, "-fopenmp", "-O2")
    out, kept = run(bench, program, HIROBA_REGIONS="auto")
    assert out.endswith("\n1\n") and kept == 0, f"{out!r}, {kept} stayed"


def data_of_threads_of_a_library(bench):
    """Likewise if a library that the program opens later has such data."""
    bench.build("libkept.so", "__thread int kept; int* mine(void) { return &kept; }", "-shared",
                "-fPIC")
    program = bench.build("opens", "#include <dlfcn.h>\n" + PROGRAM.replace(
        "DATA_OF_THREADS", "if (mine) *mine() += 1;").replace(
            "static int size_of_team", "static int* (*mine)(void); static int size_of_team").replace(
                "AT_END", """
        if (mine) return 0;
        void* library = dlopen("libkept.so", RTLD_NOW);
        if (!library) { puts(dlerror()); return 1; }
        mine = (int* (*)(void))dlsym(library, "mine");
        int equal = 0;
        for (int round = 0; round < rounds; ++round) small(round, threads);
    #pragma omp parallel num_threads(threads) reduction(+ : equal)
        equal += *mine() == rounds;
        printf("%d\\n", equal == threads);"""), "-fopenmp", "-O2")
    out, _ = run(bench, program, HIROBA_REGIONS="auto")
    assert out.endswith("\n1\n"), out


def bound(bench):
    """Threads that the program binds, or counts, are spread."""
    program = bench.build("mixed", PLAIN, "-fopenmp", "-O2")
    for name, value in (("OMP_PROC_BIND", "true"), ("OMP_THREAD_LIMIT", str(2 * bench.nodes))):
        _, kept = run(bench, program, HIROBA_REGIONS="auto", **{name: value})
        assert kept == 0, f"{name}={value}: {kept} stayed"


# Two loops of long regions: one has barriers in plenty, the other a wavefront that flags and flushes
# lead through the threads, as NAS LU has.
TOGETHER = """
    enum { steps = 60, side = 96, threads_max = 16 };
    static double plane[side][side][5], row[side];
    static volatile int reached[threads_max][16];
    static void barriers(void) {
    #pragma omp parallel
        for (int i = 0; i < side; ++i) {
            for (int k = 0; k < 4; ++k) {
    #pragma omp for
                for (int j = 0; j < side; ++j) row[j] += i * .5 + plane[i][j][k];
    #pragma omp for
                for (int j = 1; j < side - 1; ++j) plane[i][j][k] = .25 * (row[j - 1] + row[j + 1]);
            }
        }
    }
    static void wavefront(void) {
    #pragma omp parallel
        {
            const int me = omp_get_thread_num(), all = omp_get_num_threads();
            const int first = side * me / all, end = side * (me + 1) / all;
            for (int i = 1; i < side; ++i) {
                while (me > 0 && reached[me - 1][0] < i) {
    #pragma omp flush
                }
    #pragma omp flush
                for (int j = first > 1 ? first : 1; j < end; ++j)
                    plane[i][j][4] = .3 * (plane[i - 1][j][4] + plane[i][j - 1][4]) + 1;
    #pragma omp flush
                reached[me][0] = i;
    #pragma omp flush
            }
    #pragma omp barrier
            reached[me][0] = 0;
        }
    }
    int main(int words, char** word) {
        const int many = words > 1 ? atoi(word[1]) : steps;
        for (int step = 0; step < many; ++step) {
            barriers();
            wavefront();
        }
        double sum = 0;
        for (int i = 0; i < side; ++i)
            for (int j = 0; j < side; ++j)
                for (int k = 0; k < 5; ++k) sum += plane[i][j][k];
        printf("%.17g\\n", sum);
    }"""


def together(bench):
    """Regions that are long where they are spread stay all together."""
    program = bench.build("together", TOGETHER, "-fopenmp", "-O2")
    right, kept = run(bench, program)
    assert kept == 0, f"{kept} regions stayed unasked"
    for engine in ("uffd", "mprotect"):
        some_stay(bench, right, program, HIROBA_FAULT_ENGINE=engine)


def said(bench):
    """A line at the end names those that have stayed, by default, too; none does where all are spread."""
    line = re.compile(r"^hiroba: regions of (.*) stayed on node 0, where they took less time", re.MULTILINE)
    program = bench.build("together", TOGETHER, "-fopenmp", "-O2")
    for regions in ("auto", ""):
        named = []
        for _ in range(6):  # on a full machine the clock may say otherwise
            status, _, err = bench.run(program, "400", HIROBA_REGIONS=regions)
            assert status == 0, f"status {status}: {err[-600:]}"
            named = line.findall(err)
            if named:
                break
        assert len(named) == 1 and {"barriers()", "wavefront()"} == set(named[0].split(", ")), f"{named}: {err[-600:]}"
    for regions in ("spread", "turns"):
        _, _, err = bench.run(program, "20", HIROBA_REGIONS=regions)
        assert not line.search(err), err[-600:]


# A thread that another node's part of a region has made goes on between regions.
ELSEWHERE = """
    static long data[4096];
    static volatile int flag[1024], answer[1024], looked[1024];
    static void* wait_for_main(void* none) {
        // Has a copy of the flag before main writes it, and looks so seldom that it is not seen to
        // spin: upon either node 0 would release.
        int looks = 0;
        while (!flag[0]) {
            if (++looks <= 5) looked[0] = looks;
            __sync_synchronize();
            usleep(2000);
            __sync_synchronize();
        }
        long sum = 0;
        for (int i = 0; i < 4096; ++i) sum += data[i];
        __sync_synchronize();
        answer[0] = sum == 4096L * 4095 ? looks : -1;
        __sync_synchronize();
        return none;
    }
    int main(void) {
        pthread_t thread;
    #pragma omp parallel
        if (omp_get_thread_num() == omp_get_num_threads() - 1) pthread_create(&thread, 0, wait_for_main, 0);
        while (looked[0] < 5) __sync_synchronize();
        for (int i = 0; i < 4096; ++i) data[i] = 2 * i;
        __sync_synchronize();
        flag[0] = 1;
        while (!answer[0]) __sync_synchronize();
        printf("%d\\n", answer[0]);
    }"""


def thread_elsewhere(bench):
    """What main flushes between regions reaches a thread of another node, and soon."""
    program = bench.build("elsewhere", ELSEWHERE, "-fopenmp", "-O2", "-pthread")
    for engine in ("uffd", "mprotect"):
        # It takes 5 looks; by the ends of leases alone 60 to 3,000 with uffd, seldom fewer, and 8 with mprotect. A
        # full machine may hold some runs up.
        looks = []
        while sum(count < 25 for count in looks) < 3 and len(looks) < 8:
            status, out, err = bench.run(program, HIROBA_FAULT_ENGINE=engine, HIROBA_STATS="1")
            assert status == 0 and int(out) > 0, f"status {status}: {out!r} {err[-600:]}"
            assert took_part(err), err[-600:]
            looks.append(int(out))
        assert sum(count < 25 for count in looks) >= 3, f"{engine}: {looks} looks"


# A thread of node 0 writes on, whether a region is spread or not, and regions read it by its flag.
BESIDE = """
    enum { rounds = 400 };
    static long data[512];
    static volatile int flag[1024], taken[1024];
    static void* write_on(void* none) {
        for (int round = 1; round <= rounds; ++round) {
            while (taken[0] < round - 1) __sync_synchronize();
            for (int i = 0; i < 512; ++i) data[i] = round * 7 + i;
            __sync_synchronize();
            flag[0] = round;
            __sync_synchronize();
        }
        return none;
    }
    int main(void) {
        pthread_t writer;
        long wrong = 0;
        pthread_create(&writer, 0, write_on, 0);
        for (int round = 1; round <= rounds; ++round) {
            for (volatile int i = 0; i < round % 8 * 5000; ++i) {}
    #pragma omp parallel reduction(+ : wrong)
            if (omp_get_thread_num() == omp_get_num_threads() - 1) {
                // So seldom, now and then, that it is not seen to spin, upon which node 0 would release.
                do {
                    if (round % 16 == 0) usleep(2000);
                    __sync_synchronize();
                } while (flag[0] < round);
                for (int i = 0; i < 512; ++i) wrong += data[i] != round * 7 + i;
                __sync_synchronize();
                taken[0] = round;
                __sync_synchronize();
            }
        }
        pthread_join(writer, 0);
        printf("%ld\\n", wrong);
    }"""


def thread_beside(bench):
    """Flushes of node 0 beside the begin and the end of regions: what they order, they order in both."""
    program = bench.build("beside", BESIDE, "-fopenmp", "-O2", "-pthread")
    for engine in ("uffd", "mprotect"):
        status, out, err = bench.run(program, HIROBA_FAULT_ENGINE=engine, HIROBA_STATS="1")
        assert status == 0 and out == "0\n", f"status {status}: {out!r} {err[-600:]}"
        assert took_part(err), err[-600:]


CASES = [mixed, over_udp, data_of_threads, data_of_threads_of_a_library, bound, together, said,
         thread_elsewhere, thread_beside]

if __name__ == "__main__":
    sys.exit(main(CASES))
