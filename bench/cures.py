#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What it gains to do as `hiroba report` advises: each ill program of test/cluster/illnesses beside its cured twin, in
turns, not recorded, all regions spread.

    bench/cures.py --hiroba build/bin/hiroba [--rounds 5] [--times 10] [--only NAME ...] [--record docs/results/cures.csv]

Prints the least seconds, and their ratio beside the 1.5 that is asked for. The programs run --times times in a row. A
run that fails, or whose twin computes something else, ends the command.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import record

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "test/cluster/illnesses/illnesses.c"
# What the report calls each, and what the twin does instead.
CURES = {
    "false_sharing": ("false sharing", "a block for each thread's sum"),
    "dealt_singly": ("elements dealt singly", "`schedule(static)`"),
    "first_touch": ("serial first touch", "initialized by a parallel loop"),
    "serial_use": ("serial loop over what all wrote", "a reduction"),
    "column_wise": ("column-wise loop", "rows shared out"),
    "small_regions": ("regions too small", "one region around the loop"),
    "hot_lock": ("hot lock", "a private sum, added by one atomic"),
    "unbalanced": ("unbalanced loop", "`schedule(static, 50)`"),
    "shared_counter": ("shared counter", "a reduction"),
    "inner_reduction": ("reduction in an inner loop", "one reduction behind the outer loop"),
    "constants_beside": ("constants beside what changes", "what changes in a block of its own"),
    "needless_barrier": ("barrier that nobody needs", "left out"),
    "stack_arrays": ("large arrays on the stack", "allocated once"),
    "crowded": ("more threads than cores", "a thread for each core"),
    "dynamic_again": ("dynamic schedule over data that is used again", "`schedule(static)`"),
}
ASKED = 1.5
LIMIT_SECONDS = 300


class Program:
    """The ill programs and their twins, on two nodes."""

    def __init__(self, hiroba, folder, times):
        self.hiroba, self.times = hiroba, times
        self.path = pathlib.Path(folder) / "illnesses"
        subprocess.run(["gcc", "-O2", "-fopenmp", PROGRAM, "-o", self.path, "-lm"], check=True)

    def run(self, name, form):
        """The result and the seconds that the program tells."""
        threads = os.cpu_count() if name == "crowded" and form == "ill" else 1
        command = [self.hiroba, "run", "-n", "2", "-t", str(threads), self.path, name, form, str(self.times)]
        done = subprocess.run(command, env={**os.environ, "HIROBA_REGIONS": "spread"}, capture_output=True, text=True,
                              timeout=LIMIT_SECONDS, check=False)
        if done.returncode != 0 or len(done.stdout.split()) != 2:
            sys.exit(f"{name} {form}: status {done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}")
        result, seconds = done.stdout.split()
        return result, float(seconds)

    def row(self, name, rounds):
        """The least of the seconds, ill and cured: what other work on the machine takes is in neither."""
        taken = {"ill": [], "cured": []}
        results = {form: set() for form in taken}
        for _ in range(rounds):
            for form, seconds in taken.items():
                result, took = self.run(name, form)
                results[form].add(result)
                seconds.append(took)
        if results["ill"] != results["cured"] and name != "crowded":
            sys.exit(f"{name}: ill it computes {results['ill']}, cured {results['cured']}")
        return [min(seconds) for seconds in taken.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--only", nargs="+", choices=CURES, default=list(CURES))
    parser.add_argument("--record")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(words.hiroba, folder, words.times)
        for name in words.only:
            ill, cured = program.row(name, words.rounds)
            gain = ill / cured
            print(f"{name:17} {ill * 1e3:7.1f} ms {cured * 1e3:7.1f} ms {gain:6.2f}{'' if gain >= ASKED else '  below 1.5'}",
                  flush=True)
            if words.record:
                record.append(words.record, words.hiroba, {
                    "advice": CURES[name][0], "cured by": CURES[name][1], "ill, ms": f"{ill * 1e3:.0f}",
                    "cured, ms": f"{cured * 1e3:.0f}", "times faster": f"{gain:.1f}"})


if __name__ == "__main__":
    main()
