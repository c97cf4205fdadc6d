#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which processors the kernel lets each thread of a region run on: read from outside, of every node.

`hiroba run --bind-to`, OMP_PLACES with OMP_PROC_BIND, GOMP_CPU_AFFINITY. The program's threads wait
in a region while /proc/PID/task/TID/status is read. Each check is made once more where binding does
nothing (a launcher whose sched_setaffinity() is another one's, a library whose bind_to() returns at
once), and has to complain there. Exits with 77 where there is one processor.

    bind_runs.py --hiroba build/bin/hiroba [--only NAME]
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import switched_off
from clean_environment import clean_environment

SKIPPED = 77
LIMIT_SECONDS = 120  # of wall time: a hang, and no busy machine

PROGRAM = r"""
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    static int processes[64], threads[64];
#pragma omp parallel
    {
        // The kernel's numbers: getpid() is node 0's, and gettid() of main's thread is that of its process.
        char self[64] = {0};
        readlink("/proc/thread-self", self, sizeof self - 1);
        processes[omp_get_thread_num()] = atoi(self);
        threads[omp_get_thread_num()] = atoi(strrchr(self, '/') + 1);
#pragma omp barrier
#pragma omp master
        {
            for (int i = 0; i < omp_get_num_threads(); ++i)
                printf("thread %d: %d %d\n", i, processes[i], threads[i]);
            puts("there");
            fflush(stdout);
            getchar();
        }
#pragma omp barrier
    }
    return 0;
}
"""
NO_BINDING = """
#define _GNU_SOURCE
#include <sched.h>
int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t* set) {
    return (void)pid, (void)bytes, (void)set, 0;
}
"""


def processors_of(text):
    """{0, 1, 3} of "0-1,3"."""
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


class Bench:
    def __init__(self, hiroba, folder):
        self.folder = folder
        self.program = str(folder / "waits")
        (folder / "waits.c").write_text(PROGRAM)
        subprocess.run(["gcc", "-O2", "-fopenmp", folder / "waits.c", "-o", self.program], check=True)
        (folder / "nothing.c").write_text(NO_BINDING)
        subprocess.run(["gcc", "-shared", "-fPIC", folder / "nothing.c", "-o", folder / "nothing.so"], check=True)
        self.hiroba = hiroba
        # An installation whose threads bind themselves to nothing.
        row = switched_off.Row("threads", None, stub="omp::bind_to", result=1)
        self.unbinding = switched_off.copy_of(hiroba, folder / "unbinding", row)
        self.environment = clean_environment("OMP_", "GOMP_", "KMP_")

    def processors(self, nodes, threads, *words, hiroba=None, **more):
        """Of each thread of the region, in their order: (process, processors it may run on)."""
        command = [str(hiroba or self.hiroba), "run", "-n", str(nodes), "--threads", str(threads), *words, "--",
                   self.program]
        job = subprocess.Popen(command, env={**self.environment, **more}, text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        signal.alarm(LIMIT_SECONDS)
        try:
            found = []
            for line in job.stdout:
                if line == "there\n":
                    break
                process, thread = map(int, re.fullmatch(r"thread \d+: (\d+) (\d+)\n", line).groups())
                status = pathlib.Path(f"/proc/{process}/task/{thread}/status").read_text()
                allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE)
                found.append((process, processors_of(allowed.group(1))))
            _, told = job.communicate("\n")
        finally:
            signal.alarm(0)
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
        if job.returncode != 0 or len(found) != nodes * threads or len({p for p, _ in found}) != nodes:
            raise RuntimeError(f"{command}: status {job.returncode}, threads {found}: {told[-500:]}")
        return found


def by_node(found):
    """For each process, what its threads may run on."""
    nodes = {}
    for process, processors in found:
        nodes.setdefault(process, []).append(processors)
    return list(nodes.values())


def one_core_each(found, own):
    """What is wrong if each of the threads is to have a core of its own."""
    sets = [processors for _, processors in found]
    if len(frozenset().union(*sets)) != sum(map(len, sets)) or any(s >= own for s in sets):
        yield f"not on cores of their own: {sets}, the job has {sorted(own)}"


def one_place_each(found, own):
    """What is wrong if each thread of a node is to be on a processor of its own."""
    for threads in by_node(found):
        if any(len(s) != 1 or not s <= own for s in threads) or len(set(threads)) != len(threads):
            yield f"not on a processor each: {threads}"


def all_on(processor):
    def check(found, own):
        if any(s != {processor} for _, s in found):
            yield f"not all on processor {processor}: {found}"
    return check


def in_turn(processors):
    def check(found, own):
        if [next(iter(s)) for _, s in found] != processors or any(len(s) != 1 for _, s in found):
            yield f"not on {processors}: {found}"
    return check


def together(found, own):
    for threads in by_node(found):
        if len(set(threads)) != 1 or len(threads[0]) != 1:
            yield f"not all at the first thread's place: {threads}"


class Run:
    """Nodes, threads, words of hiroba run, settings; what has to be so; how binding is taken away."""

    def __init__(self, name, shape, words, settings, check, by_launcher=False):
        self.name, self.shape, self.words, self.settings = name, shape, words, settings
        self.check, self.by_launcher = check, by_launcher


def runs(own):
    first, second = sorted(own)[:2]
    threads = {"OMP_PLACES": "threads"}
    return [
        Run("core", (2, 1), ["--bind-to", "core"], {}, one_core_each, by_launcher=True),
        Run("close", (1, 2), [], {**threads, "OMP_PROC_BIND": "close"}, one_place_each),
        Run("spread", (1, 2), [], {**threads, "OMP_PROC_BIND": "spread"}, one_place_each),
        Run("nodes", (2, 2), [], {**threads, "OMP_PROC_BIND": "close"}, one_place_each),
        Run("primary", (1, 2), [], {**threads, "OMP_PROC_BIND": "primary"}, together),
        Run("one place", (2, 1), [], {"OMP_PLACES": f"{{{second}}}", "OMP_PROC_BIND": "true"}, all_on(second)),
        Run("GOMP_CPU_AFFINITY", (1, 2), [], {"GOMP_CPU_AFFINITY": f"{second} {first}"},
            in_turn([second, first])),
    ]


def wrongs(bench, run, own):
    found = bench.processors(*run.shape, *run.words, **run.settings)
    for wrong in run.check(found, own):
        yield wrong
    if run.by_launcher:
        off = bench.processors(*run.shape, *run.words, **run.settings, LD_PRELOAD=str(bench.folder / "nothing.so"))
    else:
        off = bench.processors(*run.shape, *run.words, hiroba=bench.unbinding, **run.settings)
    if not list(run.check(off, own)):
        yield f"binding does nothing, and nothing is wrong: {off}"


def domains(own):
    """The processors of each NUMA domain that the job may use."""
    lists = pathlib.Path("/sys/devices/system/node").glob("node[0-9]*/cpulist")
    return {processors_of(path.read_text()) & own for path in lists if path.read_text().strip()} or {own}


def free_and_numa(bench, own):
    """Without binding, and in domains: neither less nor more."""
    for words, allowed in ((["--bind-to", "none"], {own}), ([], {own}), (["--bind-to", "numa"], domains(own))):
        found = bench.processors(2, 1, *words)
        if any(processors not in allowed for _, processors in found):
            yield f"{words}: {found} instead of {allowed}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", type=pathlib.Path, required=True)
    parser.add_argument("--only")
    options = parser.parse_args()
    own = frozenset(os.sched_getaffinity(0))
    if len(own) < 2:
        print("one processor")
        return SKIPPED
    failed = 0
    with tempfile.TemporaryDirectory(prefix="bind") as folder:
        bench = Bench(options.hiroba.resolve(), pathlib.Path(folder))
        for run in runs(own):
            if options.only in (None, run.name):
                found = list(wrongs(bench, run, own))
                print(f"{run.name}: {'; '.join(found) or 'ok'}", flush=True)
                failed += bool(found)
        if options.only is None:
            found = list(free_and_numa(bench, own))
            print(f"free and numa: {'; '.join(found) or 'ok'}")
            failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
