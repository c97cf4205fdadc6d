#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `hiroba run --record` costs a program: runs without and with it, in turns: A B A B.

    bench/recording_cost.py --hiroba build/bin/hiroba [--nodes 2] [--rounds 5] [--record docs/results/recording.csv]
        [--program "CG, class A=npb/bin/cg.A" ...]

Without --program: heat, CG, histogram and mandelbrot of examples/. Prints the least seconds of each, the ratio, and how
large the recording is. A run that fails ends the command.
"""
import argparse
import os
import pathlib
import shlex
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
    """How long a whole run takes, the launcher's start and end included."""
    told = [] if file is None else ["--record", file]
    environment = {**os.environ, "HIROBA_REGIONS": "spread", **(settings or {})}
    begun = time.monotonic()
    done = subprocess.run([words.hiroba, "run", "-n", str(words.nodes), "-t", "1", *told, "--", *command], env=environment,
                          capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}")
    return time.monotonic() - begun


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
                taken["without"].append(seconds_of(words, command))
                taken["with"].append(seconds_of(words, command, file))
            bare, recorded = (min(seconds) for seconds in taken.values())
            size = file.stat().st_size / 2**20
            print(f"{name:32} {bare:7.3f} s {recorded:7.3f} s {recorded / bare:5.2f}  {size:.1f} MiB", flush=True)
            if words.record:
                record.append(words.record, words.hiroba, {
                    "program": name, "not recorded": f"{bare:.2f} s", "recorded": f"{recorded:.2f} s",
                    "times as long": f"{recorded / bare:.2f}", "recording": f"{size:.1f} MiB"})


if __name__ == "__main__":
    main()
