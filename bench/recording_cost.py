#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `hiroba run --record` costs a program: runs without and with it, in turns: A B A B.

    bench/recording_cost.py --hiroba build/bin/hiroba [--nodes 2] [--rounds 5] [--record docs/results/recording.csv]
        [--program "CG, class A=npb/bin/cg.A" ...]

Without --program: heat, CG, histogram and mandelbrot of examples/. Prints the least seconds of each and their ratio; of the
processors' time of all nodes, which other work on the machine changes less, the medians; and how large the recording is. A
run that fails ends the command.
"""
import argparse
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import record

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = {"heat, 1024², 200 steps": ("heat", "1024", "200"), "CG, class W": ("cg", "W"),
            "histogram, 2,000,000 samples": ("histogram", "2000000"), "mandelbrot, 1200²": ("mandelbrot", "1200")}
LIMIT_SECONDS = 600


def build(name, folder):
    target = pathlib.Path(folder) / name
    if not target.exists():
        subprocess.run(["gcc", "-O2", "-fopenmp", ROOT / f"examples/{name}.c", "-o", target, "-lm"], check=True)
    return target


def chosen(words, folder):
    """Each program's name and its command."""
    if not words.program:
        return {name: [build(command[0], folder), *command[1:]] for name, command in EXAMPLES.items()}
    named = (text.split("=", 1) for text in words.program)
    return {name: shlex.split(command) for name, command in named}


def seconds_of(words, command, file=None, settings=None):
    return times_of(words, command, file, settings)[0]


def times_of(words, command, file=None, settings=None):
    """How long a whole run takes, the launcher's start and end included, and the processors' time of all its nodes."""
    told = [] if file is None else ["--record", file]
    environment = {**os.environ, "HIROBA_REGIONS": "spread", **(settings or {})}
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([words.hiroba, "run", "-n", str(words.nodes), "-t", "1", *told, "--", *command], env=environment,
                          capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", nargs="+")
    parser.add_argument("--record")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "r.hrec"
        for name, command in chosen(words, folder).items():
            taken = {"without": [], "with": []}
            for _ in range(words.rounds):
                taken["without"].append(times_of(words, command))
                taken["with"].append(times_of(words, command, file))
            walls = [min(wall for wall, _ in times) for times in taken.values()]
            bare, recorded = (statistics.median(cpu for _, cpu in times) for times in taken.values())
            size = file.stat().st_size / 2**20
            print(f"{name:32} {walls[0]:7.3f} s {walls[1]:7.3f} s {walls[1] / walls[0]:5.2f}, of processors {bare:7.3f} s "
                  f"{recorded:7.3f} s {recorded / bare:5.2f}  {size:.1f} MiB", flush=True)
            if words.record:
                record.append(words.record, words.hiroba, {
                    "program": name, "processor time": f"{bare:.2f} s", "recorded": f"{recorded:.2f} s",
                    "times as much": f"{recorded / bare:.2f}", "recording": f"{size:.1f} MiB"})


if __name__ == "__main__":
    main()
