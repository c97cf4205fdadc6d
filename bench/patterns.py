#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shapes of programs that a shared memory of several machines makes slow first, beside libgomp, in turns.

    bench/patterns.py --hiroba build/bin/hiroba [OTHER/bin/hiroba ...] [--nodes 2] [--rounds 3]
        [--provider shm] [--only NAME ...]

Compiles bench/openmp/patterns.c and runs each pattern with libgomp and then by each command: A B A B. Prints the medians
of the seconds that the program tells, and their ratio beside the one that is asked for. A run whose answer is wrong, or in
which a thread was missing, ends the command.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().parent / "openmp" / "patterns.c"
# Times libgomp, at most.
ASKED = {"serial_locks": 1.3, "atomic_start": 1.3, "filter": 1.3, "tables": 1.3, "graph": 4, "wavefront": 5,
         "small_regions": 2}
LIMIT_SECONDS = 600


def seconds_of(command, environment):
    run = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True,
                         timeout=LIMIT_SECONDS, check=False)
    told = re.search(r"^right ([\d.]+) s, (\d+) threads$", run.stdout, re.MULTILINE)
    if run.returncode != 0 or not told:
        sys.exit(f"{' '.join(command)}: status {run.returncode}: {run.stdout[-300:]}{run.stderr[-600:]}")
    if told[2] != environment["OMP_NUM_THREADS"]:
        sys.exit(f"{' '.join(command)}: {told[2]} threads took part, of {environment['OMP_NUM_THREADS']}")
    return float(told[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", nargs="+", required=True)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--provider", default="shm")
    parser.add_argument("--only", nargs="+", choices=ASKED, default=list(ASKED))
    options = parser.parse_args()
    environment = {"OMP_NUM_THREADS": str(options.nodes), "HIROBA_PROVIDER": options.provider,
                   "HIROBA_REGIONS": os.environ.get("HIROBA_REGIONS", "spread")}
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "patterns")
        subprocess.run(["gcc", "-O3", "-march=native", "-fopenmp", PROGRAM, "-o", program], check=True)
        print(f"{'pattern':14} {'libgomp':>9}" + "".join(f" {'hiroba':>9} {'ratio':>6}" for _ in options.hiroba) + "  asked")
        for name in options.only:
            commands = [[]] + [[hiroba, "run", "-n", str(options.nodes), "--threads", "1", "--"]
                               for hiroba in options.hiroba]
            taken = [[] for _ in commands]
            for _ in range(options.rounds):
                for command, seconds in zip(commands, taken):
                    seconds.append(seconds_of(command + [program, name], environment))
            bare, *ours = [statistics.median(seconds) for seconds in taken]
            print(f"{name:14} {bare:7.3f} s" + "".join(f" {time:7.3f} s {time / bare:6.2f}" for time in ours)
                  + f"  {ASKED[name]}", flush=True)


if __name__ == "__main__":
    main()
