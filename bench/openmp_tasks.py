#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What tasks cost and gain: on nodes of hiroba, with libgomp and on one thread, in turns.

    bench/openmp_tasks.py --hiroba build/bin/hiroba [OTHER/bin/hiroba ...] [--nodes 2] [--threads 1]
        [--providers shm udp] [--rounds 3] [--samples 5] [--only NAME] [--limits] [--record FILE]

Each round runs one thread (libgomp), libgomp with as many threads as the nodes have, then each command over each
provider: A B C A B C. A figure is the smallest sample of all rounds: what others do on the machine only adds. The first two rows
are microseconds: an empty task made and executed, and the time until another thread has begun a task
whose creator computes. The others are speed-ups over one thread. The measured programs check what
they compute (bench/openmp/tasks.c).
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import record

PROGRAM = pathlib.Path(__file__).resolve().parent / "openmp" / "tasks.c"
LIMIT_SECONDS = 600
COSTS = ("empty_task", "steal")
# What docs/layers/tasks.md promises for two nodes of one thread, of the medians.
EMPTY_MAX, STEAL_MAX_US = 1.5, 25
SPEED_UP_MIN = {"shm": 1.6, "udp": 1.3}


def figures_of(command, words, environment):
    """{row: [least, median]} of one run."""
    run = subprocess.run(command + words, env={"HIROBA_REGIONS": "spread", **os.environ, **environment}, capture_output=True, text=True,
                         timeout=LIMIT_SECONDS)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {run.returncode}: {run.stdout[-300:]}{run.stderr}")
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    return {line[0]: [float(number) for number in line[1:]] for line in lines}


def variants_of(options, program):
    """(title, command, environment) of everything that is compared; one thread first."""
    threads = options.nodes * options.threads
    variants = [("one thread", [program], {"OMP_NUM_THREADS": "1"}),
                (f"libgomp, {threads} threads", [program], {"OMP_NUM_THREADS": str(threads)})]
    for provider in options.providers:
        for hiroba in options.hiroba:
            name = f"{options.nodes} nodes, {provider}" + (f", {hiroba}" if len(options.hiroba) > 1 else "")
            variants.append((name, [hiroba, "run", "-n", str(options.nodes), "--threads", str(options.threads), "--",
                                    program], {"HIROBA_PROVIDER": provider, "OMP_NUM_THREADS": str(threads)}))
    return variants


def limit_of(row, provider, libgomp):
    """(limit, how it is told) of a row over a provider, or None. `libgomp`: its rows."""
    if row == "empty_task":
        return EMPTY_MAX * libgomp[row][1], f"at most {EMPTY_MAX} x libgomp's: {EMPTY_MAX * libgomp[row][1]:.3f} us"
    if row == "steal":
        return (STEAL_MAX_US, f"at most {STEAL_MAX_US} us") if provider == "shm" else None
    return SPEED_UP_MIN[provider], f"at least {SPEED_UP_MIN[provider]} x"


def figures_beside_limits(alone, libgomp, rows, provider, quantity):
    """A line for each row, and what falls short. `quantity`: 0 least, 1 median."""
    lines, short = [], []
    for row, measured in rows.items():
        limit = limit_of(row, provider, libgomp) if provider else None
        got = measured[quantity] if row in COSTS else alone[row][quantity] / measured[quantity]
        lines.append(f"    {row:12}{got:9.3f} {'us' if row in COSTS else 'x '}")
        if limit is None:
            continue
        kept = got <= limit[0] if row in COSTS else got >= limit[0]
        lines[-1] += f"   {limit[1]}: {'kept' if kept else 'MISSED'}"
        if not kept:
            short.append(row)
    return lines, short


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", nargs="+", required=True)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--providers", nargs="+", default=["shm"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--only")
    parser.add_argument("--limits", action="store_true", help="the median beside what is promised; status 1 if missed")
    parser.add_argument("--record", help="a CSV file (docs/results/tasks.csv)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tasks") as directory:
        program = str(pathlib.Path(directory) / "tasks")
        subprocess.run(["gcc", "-O2", "-fopenmp", str(PROGRAM), "-o", program], check=True)
        words = [str(options.samples)] + ([options.only] if options.only else [])
        variants = variants_of(options, program)
        best = {title: {} for title, _, _ in variants}
        for _ in range(options.rounds):
            for title, command, environment in variants:
                for row, (least, median) in figures_of(command, words, environment).items():
                    held = best[title].get(row, (least, median))
                    best[title][row] = (min(held[0], least), min(held[1], median))
    alone = best["one thread"]
    if options.record:
        record_rows(options, best)
    if options.limits:
        return print_limits(options, variants, best)
    for title, rows in best.items():
        print(title)
        for row, (least, median) in rows.items():
            figure = f"{least:9.3f} us (median {median:.3f})" if row in COSTS else (
                f"{alone[row][0] / least:9.2f} x (median {alone[row][1] / median:.2f}; {least:.3f} s)")
            print(f"    {row:12}{figure}")
    return 0


def print_limits(options, variants, best):
    """Medians beside limits. @return the status"""
    alone, libgomp = best[variants[0][0]], best[variants[1][0]]
    missed = 0
    for title, _, environment in variants:
        lines, short = figures_beside_limits(alone, libgomp, best[title], environment.get("HIROBA_PROVIDER"), 1)
        print("\n".join([title + " (medians)"] + lines), flush=True)
        missed += len(short)
    print(f"{missed} limits missed")
    return 1 if missed else 0


def record_rows(options, best):
    for title, rows in best.items():
        for row, (least, median) in rows.items():
            record.append(options.record, options.hiroba[0],
                          {"variant": title, "row": row, "least": f"{least:.6g}", "median": f"{median:.6g}",
                           "unit": "us" if row in COSTS else "s"})


if __name__ == "__main__":
    sys.exit(main())
