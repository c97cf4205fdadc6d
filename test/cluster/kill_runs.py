#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills or stops a random node of a job at a random moment, and looks at what is left.

Each run draws from its seed: the number of nodes, the fault engine, the provider, the victim, the moment, and
what happens to it: SIGKILL at once, or SIGSTOP and SIGKILL later. A run passes when

  * the job is over within 20 s of the kill (a stopped node alone ends nothing: it may go on), half of all within 2 s,
  * standard error has exactly one line of hiroba, which names the victim's rank and process,
  * the status is 137, no process of the job is left, and no file in the job's directory,
  * neither /dev/shm nor a shared memory segment of System V has anything that was not there.

    kill_runs.py --hiroba build/bin/hiroba --runs 20            a minute; in every check
    kill_runs.py --hiroba build/bin/hiroba --runs 1000          the long form
    kill_runs.py --hiroba build/bin/hiroba --first 417 --runs 1 one run again, by its seed
"""
import argparse
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from clean_environment import clean_environment

END_SECONDS = 2.0  # of the median run: other work on the machine delays some, a wait would delay all
LIMIT_SECONDS = 20  # of each; nodes that miss a peer wait for 30
STATUS_KILLED = 128 + signal.SIGKILL
PROGRAM = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Regions, barriers, criticals, atomics, allocation: whatever a node may be in when it dies. */
int main(void) {
    const long count = 1 << 16;
    double* values = calloc(count, sizeof *values);
    long total = 0, hits = 0;
    for (long round = 0;; ++round) {
#pragma omp parallel
        {
#pragma omp for schedule(dynamic, 4096)
            for (long i = 0; i < count; ++i) values[i] += 1;
#pragma omp critical
            total += 1;
#pragma omp atomic
            hits += 1;
            free(strcpy(malloc(64), "mine"));
#pragma omp barrier
        }
        if (hits != total || values[0] != round + 1) return 3;
    }
}
"""


class Run:
    """What one seed draws."""

    def __init__(self, seed):
        source = random.Random(seed)
        self.seed = seed
        self.nodes = source.choice([2, 3, 4])
        self.engine = source.choice(["uffd", "mprotect", "auto"])
        self.victim = source.randrange(self.nodes)
        self.moment = source.choice([source.uniform(0, 0.05), source.uniform(0, 0.6)])
        self.stopped_for = source.choice([None, None, source.uniform(0.01, 0.5)])
        self.provider = source.choice(["shm", "udp", "auto"])

    def __str__(self):
        deed = "killed" if self.stopped_for is None else f"stopped for {self.stopped_for:.3f} s"
        return (f"seed {self.seed}: node {self.victim} of {self.nodes}, {self.engine}, "
                f"{self.provider}, {deed} after {self.moment:.3f} s")


def children(pid):
    """Process ids of the children of `pid`, in the order they were started: that of the ranks."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return sorted(int(word) for word in file.read().split())
    except FileNotFoundError:
        return []


def is_alive(pid, program):
    """Whether `pid` still runs `program`: the number alone may be another process's by now."""
    try:
        return os.readlink(f"/proc/{pid}/exe") == str(program)
    except OSError:
        return False


def shared_memory(processes):
    """What other programs of the machine share comes and goes meanwhile: files under our name, and segments of System V
    that `processes` made."""
    files = {one for one in os.listdir("/dev/shm") if "hiroba" in one}
    segments = pathlib.Path("/proc/sysvipc/shm")
    lines = segments.read_text().splitlines()[1:] if segments.exists() else []
    creator = 4  # key, number, mode, size, process that made it
    return files, [line for line in lines if int(line.split()[creator]) in processes]


def wait_for_nodes(job, count, program):
    """The processes of the ranks, once all execute the program; the launcher ends if they cannot."""
    while job.poll() is None:
        nodes = children(job.pid)
        if len(nodes) == count and all(is_alive(pid, program) for pid in nodes):
            return nodes
        time.sleep(0.0005)
    return []


def strike(run, victim):
    """Does the deed; returns when the node was sent SIGKILL."""
    if run.stopped_for is not None:
        os.kill(victim, signal.SIGSTOP)
        time.sleep(run.stopped_for)
    os.kill(victim, signal.SIGKILL)
    return time.monotonic()


def judge(run, job, nodes, killed_at, program, directory, before):
    wrong = []
    try:
        _, stderr = job.communicate(timeout=LIMIT_SECONDS)
        seconds = time.monotonic() - killed_at
    except subprocess.TimeoutExpired:
        job.kill()
        job.communicate()
        return [f"the job went on for {LIMIT_SECONDS} s after the kill"], LIMIT_SECONDS
    if job.returncode != STATUS_KILLED:
        wrong.append(f"status {job.returncode}")
    text = stderr.decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    name = re.compile(rf"^hiroba.*\brank {run.victim} \(process {nodes[run.victim]}\).*signal 9\b")
    if len(lines) != 1 or not name.search(lines[0]):
        wrong.append(f"standard error: {text[-500:]!r}")
    left = [pid for pid in nodes if is_alive(pid, program)]
    if left:
        wrong.append(f"processes {left} are left")
    files = os.listdir(directory)
    if files:
        wrong.append(f"files {files} are left")
    files, segments = shared_memory([job.pid] + nodes)
    if files - before or segments:
        wrong.append(f"shared memory is left: {files - before}, {segments}")
    return wrong, seconds


def perform(options, run, program):
    """Returns what is wrong and how long the job lived after the kill."""
    environment = clean_environment("OMP_", "LD_")
    environment["HIROBA_FAULT_ENGINE"] = run.engine
    environment["HIROBA_PROVIDER"] = run.provider
    environment["OMP_NUM_THREADS"] = str(run.nodes)
    before, _ = shared_memory([])
    with tempfile.TemporaryDirectory(prefix="kill") as directory:
        environment["TMPDIR"] = directory
        job = subprocess.Popen(
            [options.hiroba, "run", "-n", str(run.nodes), "--threads", "1", "--", str(program)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment, cwd=directory)
        nodes = wait_for_nodes(job, run.nodes, program)
        if not nodes:
            return [f"the job did not start: {job.communicate()[1][-500:]!r}"], 0.0
        time.sleep(run.moment)
        if job.poll() is not None:
            return [f"ended by itself: {job.returncode} {job.communicate()[1][-500:]!r}"], 0.0
        return judge(run, job, nodes, strike(run, nodes[run.victim]), program, directory, before)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="seed of the first run")
    options = parser.parse_args()
    options.hiroba = str(pathlib.Path(options.hiroba).resolve())

    failed, lasted = 0, []
    with tempfile.TemporaryDirectory(prefix="kill_runs") as directory:
        program = pathlib.Path(directory).resolve() / "busy"
        subprocess.run(["gcc", "-O2", "-fopenmp", "-x", "c", "-", "-o", str(program)],
                       input=PROGRAM.encode(), check=True)
        for seed in range(options.first, options.first + options.runs):
            run = Run(seed)
            wrong, seconds = perform(options, run, program)
            lasted.append(seconds)
            if wrong:
                failed += 1
                print(f"FAIL {run}: " + "; ".join(wrong), flush=True)
                print(f"     again: {sys.argv[0]} --hiroba {options.hiroba} --first {seed} --runs 1",
                      flush=True)
            elif options.runs <= 20 or seed % 100 == 0:
                print(f"ok   {run}; over after {seconds:.3f} s", flush=True)
    middle = statistics.median(lasted)
    print(f"{options.runs - failed} passed, {failed} failed; the job was over {max(lasted):.3f} s after "
          f"the kill at the latest, {middle:.3f} s in the middle run")
    return 1 if failed or middle > END_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
