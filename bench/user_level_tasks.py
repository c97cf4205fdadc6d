#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What tasks of hiroba/tasks.hpp cost and gain: creation beside calls and a bare pool of threads, steals, the
unbalanced tree search and a sort on one and two nodes by turns, pointers chased by 64 tasks beside one after the
other. Answers are checked by the programs. Writes rows to a file of docs/results.

Usage: bench/user_level_tasks.py [--build build] [--rounds 3] [--tree t1|t1l] [--count 10000000] [--write FILE]
"""

import argparse
import csv
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

COLUMNS = ["row", "provider", "least", "median", "unit", "date", "commit", "machine"]


def run(options, nodes, provider, *words):
    """What the program printed on its nodes."""
    command = [options.build / "bin/hiroba", "run", "--spmd", "-n", nodes, *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=options.timeout,
                          env={**os.environ, "HIROBA_PROVIDER": provider})
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def figures(options):
    """One round: (row, provider, figure, unit)."""
    examples, tests = options.build / "examples", options.build / "tasks"
    said = run(options, 1, "shm", examples / "tasks_fib", 30)
    for row, text in (("call", "calls"), ("async", "children"), ("async anywhere", "offers")):
        yield row, "shm", float(re.search(rf"by {text}: .*, ([\d.]+) ns a task", said)[1]), "ns"
    yield "pool of threads", "shm", float(re.search(r"pool of threads: ([\d.]+) ns", said)[1]), "ns"
    for provider in ("shm", "udp"):
        said = run(options, 2, provider, tests / "tasks_steals", 1000)
        yield "steal", provider, float(re.search(r": ([\d.]+) us each", said)[1]), "us"
        said = run(options, 2, provider, tests / "tasks_chase", 64, 200)
        yield "64 chains, gain of tasks", provider, float(re.search(r"([\d.]+) times as fast", said)[1]), "x"
        for name, words in ((f"uts {options.tree}", [examples / "tasks_uts", options.tree]),
                            (f"cilksort {options.count}", [examples / "tasks_cilksort", options.count, 32])):
            seconds = {nodes: float(re.search(r"([\d.]+) s[,:]", run(options, nodes, provider, *words))[1])
                       for nodes in (1, 2)}
            for nodes, took in seconds.items():
                yield f"{name}, {nodes} nodes of 1 worker", provider, took, "s"
            yield f"{name}, gain of 2 nodes", provider, seconds[1] / seconds[2], "x"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tree", default="t1")
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--machine", default=f"{os.cpu_count()} cores")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    taken = {}
    for _ in range(options.rounds):
        for row, provider, figure, unit in figures(options):
            taken.setdefault((row, provider, unit), []).append(figure)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    rows = []
    for (row, provider, unit), all_of in taken.items():
        # Of gains the best is the largest.
        best = max(all_of) if unit == "x" else min(all_of)
        rows.append([row, provider, f"{best:.3g}", f"{statistics.median(all_of):.3g}", unit,
                     time.strftime("%Y-%m-%d"), commit, options.machine])
        print(f"{row:45} {provider:4} best {best:8.3g}  median {statistics.median(all_of):8.3g} {unit}")
    if options.write is not None:
        is_new = not options.write.exists()
        with options.write.open("a", newline="") as to:
            writer = csv.writer(to, lineterminator="\n")
            if is_new:
                writer.writerow(COLUMNS)
            writer.writerows(rows)


if __name__ == "__main__":
    main()
