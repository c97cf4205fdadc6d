#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What tasks cost and gain: on nodes of hiroba, with libgomp and on one thread, in turns.

    bench/openmp_tasks.py --hiroba build/bin/hiroba [OTHER/bin/hiroba ...] [--nodes 2] [--threads 1]
        [--providers shm udp] [--rounds 3] [--samples 5] [--only NAME]

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

PROGRAM = pathlib.Path(__file__).resolve().parent / "openmp" / "tasks.c"
LIMIT_SECONDS = 600
COSTS = ("empty_task", "steal")


def figures_of(command, words, environment):
    """{row: [least, median]} of one run."""
    run = subprocess.run(command + words, env={**os.environ, **environment}, capture_output=True, text=True,
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", nargs="+", required=True)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--providers", nargs="+", default=["shm"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--only")
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
    for title, rows in best.items():
        print(title)
        for row, (least, median) in rows.items():
            figure = f"{least:9.3f} us (median {median:.3f})" if row in COSTS else (
                f"{alone[row][0] / least:9.2f} x (median {alone[row][1] / median:.2f}; {least:.3f} s)")
            print(f"    {row:12}{figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
