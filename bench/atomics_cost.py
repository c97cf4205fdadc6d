#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What it costs that atomics are releases and acquires (HIROBA_ATOMICS), beside atomics that order nothing.

    bench/atomics_cost.py --hiroba build/bin/hiroba [--npb NPB/bin] [--classes W] [--nodes 2]
        [--rounds 3] [--only NAME ...] [--proteins 60]

The programs: single constructs (hiroba-perf-openmp, beside hiroba), atomics that scatter plain writes
(bench/openmp/scatter.c), CG and EP of the NAS Parallel Benchmarks where --npb names their folder (as
cg.W), Debian's clustalo where it is installed. Each round runs each program with HIROBA_ATOMICS=relaxed,
then with the default: A B A B. Each run must be right and every node take part. Printed are medians:
wall seconds, processor seconds of all nodes (user and system), and the counters that tell why. On a
busy machine only processor seconds and counters mean anything.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "test/cluster"))
from clean_environment import clean_environment  # noqa: E402
import debian_programs  # noqa: E402

MODES = ("relaxed", "default")
COUNTERS = ("atomics", "releases", "acquires", "pulls", "blocks_merged")
CONSTRUCTS = ("atomic", "critical", "reduction", "single", "parallel")
LIMIT_SECONDS = 900
VERIFIED = "SUCCESSFUL"


class Run:
    """One run: what it took, and what it counted."""

    def __init__(self, command, mode, wanted):
        environment = clean_environment("OMP_")
        environment["HIROBA_STATS"] = "1"
        if mode != "default":
            environment["HIROBA_ATOMICS"] = mode
        before, begin = os.times(), time.monotonic()
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=LIMIT_SECONDS)
        after = os.times()
        self.wall = time.monotonic() - begin
        self.processor = (after.children_user - before.children_user +
                          after.children_system - before.children_system)
        self.out, self.status = done.stdout, done.returncode
        rows = {words[0]: [int(word) for word in words[1:]] for words in
                (line.split() for line in done.stderr.splitlines())
                if len(words) > 2 and all(word.isdigit() for word in words[1:])}
        self.counters = {name: rows.get(name, [0])[-1] for name in COUNTERS}
        regions = rows.get("parallel_regions", [0])
        # The C port of the NAS benchmarks ends main() without a return: its status says nothing.
        ended = done.returncode == 0 or wanted == VERIFIED and VERIFIED in done.stdout
        if not ended or min(regions) == 0:
            sys.exit(f"{' '.join(map(str, command))}, {mode}: status {done.returncode}, regions of nodes "
                     f"{regions}\n{done.stdout[-300:]}{done.stderr[-600:]}")


def programs(options, folder):
    """(name, words, what its output must have in it)."""
    subprocess.run(["gcc", "-O2", "-fopenmp", HERE / "openmp/scatter.c", "-o", folder / "scatter"], check=True)
    constructs = pathlib.Path(options.hiroba).resolve().parent / "hiroba-perf-openmp"
    for construct in CONSTRUCTS:
        yield f"construct {construct}", [constructs, "300", construct], "end"
    yield "scatter", [folder / "scatter"], "right"
    for kernel in ("ep", "cg") if options.npb else ():
        for letter in options.classes:
            program = pathlib.Path(options.npb) / f"{kernel}.{letter}"
            if program.exists():
                yield f"{kernel}.{letter}", [program], VERIFIED
    path = shutil.which("clustalo")
    if path is not None:
        proteins = folder / "protein.fasta"
        debian_programs.write_families(proteins, options.proteins, 100, debian_programs.PROTEIN, .3, 2, "")
        yield "clustalo", [path, "--threads", str(options.nodes), "-i", proteins, "-o", folder / "out",
                           "--force"], ""


def middle(runs, value):
    return statistics.median(value(run) for run in runs)


def print_table(results):
    print("| program | wall s: relaxed, default | processor s: relaxed, default | ratio | " +
          " | ".join(COUNTERS) + " |")
    print("|---" * (4 + len(COUNTERS)) + "|")
    for name, runs in results.items():
        cells = [f"{middle(runs[mode], lambda run: run.wall):.2f}" for mode in MODES]
        cpu = [middle(runs[mode], lambda run: run.processor) for mode in MODES]
        counted = [" / ".join(f"{middle(runs[mode], lambda run: run.counters[counter]):.0f}" for mode in MODES)
                   for counter in COUNTERS]
        print(f"| {name} | {', '.join(cells)} | {cpu[0]:.2f}, {cpu[1]:.2f} | {cpu[1] / max(cpu[0], .01):.2f} | " +
              " | ".join(counted) + " |")


def figures_of(runs):
    """{construct: least of all runs} of a construct program's output; of others nothing."""
    least = {}
    for run in runs:
        for line in run.out.splitlines():
            words = line.split("\t")
            if words[0] == "row":
                figure = min(map(float, words[4:]))
                least[words[2]] = min(least.get(words[2], figure), figure)
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--npb", help="folder of the NAS Parallel Benchmarks")
    parser.add_argument("--classes", nargs="+", default=["W"])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="names of programs")
    parser.add_argument("--proteins", type=int, default=60, help="sequences for clustalo")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as name:
        for title, words, wanted in programs(options, pathlib.Path(name)):
            if options.only and not any(only in title for only in options.only):
                continue
            results[title] = {mode: [] for mode in MODES}
            for _ in range(options.rounds):
                for mode in MODES:
                    run = Run([options.hiroba, "run", "-n", str(options.nodes), "-t", "1", "--", *words], mode, wanted)
                    if wanted not in run.out:
                        sys.exit(f"{title}, {mode}: no {wanted} in\n{run.out[-600:]}")
                    results[title][mode].append(run)
    print_table(results)
    rows = {title: [figures_of(runs[mode]) for mode in MODES] for title, runs in results.items()
            if title.startswith("construct ")}
    print("\n| construct, µs, least | relaxed | default |\n|---|---|---|")
    for relaxed, default in rows.values():
        for construct in relaxed:
            print(f"| {construct} | {relaxed[construct]:.2f} | {default.get(construct, 0):.2f} |")


if __name__ == "__main__":
    main()
