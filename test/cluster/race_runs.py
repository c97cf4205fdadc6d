#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program with known races under each HIROBA_RACE, both fault engines, over shm and udp.

Checks that each race is told once, with its variable, line, nodes and synchronization; that no
other line is said; that the program's result is right whatever is reported. Also that the counters
by synchronization name the same place. Then one race or ordered hand-over a program, on 2 and 4
nodes, one and two threads each, --runs times: each race must be told with its variable's name, each
program that is ordered must be right and nothing told.
Usage: race_runs.py --hiroba PATH [--cc gcc] [--runs N]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent / "programs/races.c"
ENGINES = ("uffd", "mprotect")
PROVIDERS = ("shm", "udp")
KINDS = SOURCE.parent / "race_kinds.c"
RACES = ("write", "write_0_late", "write_1_late", "add_up")
ORDERED = ("locks", "flag")


def line_of(mark):
    """The number of the line whose comment is `line of <mark>`."""
    for number, text in enumerate(SOURCE.read_text().splitlines(), 1):
        if text.endswith(f"// line of {mark}"):
            return number
    raise SystemExit(f"{SOURCE} has no line of {mark}")


# A node that cannot be unwound at the moment the launcher looks has no frame named.
FRAME = r", in the frame of races\.c:\d+ \(main\)"
# A node may also learn of the other's write while it publishes in the background.
PUBLISHED = (r"while it published, after it synchronized at (0x[0-9a-f]+|\S+ \(.*\))"
             r"|at a place that is not known")


class Runs:
    """The program, and what went wrong so far."""

    def __init__(self, hiroba, program):
        self.hiroba, self.program = hiroba, program
        self.faults = []
        self.frames = 0
        self.at_barriers = set()

    def run(self, engine, **settings):
        """Status, output and the lines about races."""
        environment = dict(os.environ, HIROBA_FAULT_ENGINE=engine, **settings)
        done = subprocess.run(
            [self.hiroba, "run", "-n", "2", "-t", "1", str(self.program)],
            env=environment, capture_output=True, text=True, timeout=300)
        races = [line for line in done.stderr.splitlines() if "write-write race" in line]
        return done, races

    def check(self, is_right, what, done):
        """Remembers a failure with all that was printed."""
        if not is_right:
            self.faults.append(f"{what}\n{done.stdout}{done.stderr}")

    def expect_races(self, engine, provider, mode, patterns):
        """Each pattern in exactly one line, no line more, and the right result."""
        done, races = self.run(engine, HIROBA_RACE=mode, HIROBA_PROVIDER=provider)
        what = f"{engine}, {provider}, HIROBA_RACE={mode}"
        self.check(done.returncode == 0 and done.stdout == "right\n", f"{what}: result", done)
        self.check(len(races) == len(patterns), f"{what}: {len(races)} races", done)
        self.frames += len(re.findall(FRAME, done.stderr))
        for pattern in patterns:
            found = [line for line in races if re.search(pattern, line)]
            self.check(len(found) == 1, f"{what}: {len(found)} lines match {pattern}", done)
            self.at_barriers.update(pattern for line in found if "at its barrier" in line)
        summed = re.findall(r"^hiroba: races at (\d+) places?: (.*)\. What they", done.stderr, re.MULTILINE)
        self.check([int(count) for count, _ in summed] == [len(patterns)] * bool(patterns), f"{what}: sums up {summed}", done)
        self.check(not patterns or f"1 in counter (races.c:{line_of('counter')})" in summed[0][1], f"{what}: names {summed}", done)

    def expect_abort(self, engine):
        """The job ends at the first race, with its numbers, and no output of a finished run."""
        done, races = self.run(engine, HIROBA_RACE="abort")
        ended = done.returncode == 1 and "HIROBA_RACE=abort" in done.stderr and races
        self.check(ended and done.stdout == "", f"{engine}, HIROBA_RACE=abort", done)

    def expect_places(self, engine, barrier):
        """The barrier's place in the table and in the file, with what was merged there."""
        done, _ = self.run(engine, HIROBA_STATS="full", HIROBA_RACE="off")
        named = re.search(rf"  barrier at {barrier}", done.stderr)
        self.check(named, f"{engine}, HIROBA_STATS=full: {barrier}", done)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stats.json"
            done, _ = self.run(engine, HIROBA_STATS=f"json:{file}", HIROBA_RACE="off")
            nodes = json.loads(file.read_text())["nodes"]
        merged = [place["counters"]["blocks_merged"] for node in nodes for place in node["places"]
                  if re.search(rf"^barrier at {barrier}", place["place"])]
        self.check(sum(merged) >= 4, f"{engine}, HIROBA_STATS=json: merged {merged}", done)
        # The places are sent after the sums; the background flusher may count a few in between.
        late_max = 16
        later = [sum(place["counters"][name] for place in node["places"]) - node["counters"][name]
                 for node in nodes for name in ("blocks_merged", "releases", "invalidations")]
        self.check(all(0 <= count <= late_max for count in later),
                   f"{engine}: the places do not sum up to the nodes: {later}", done)


class Kinds:
    """Programs of one race or none, many times; remembers what went wrong."""

    def __init__(self, hiroba, program):
        self.hiroba, self.program = hiroba, program
        self.faults = []
        self.runs = 0

    def run(self, kind, nodes, threads, **settings):
        self.runs += 1
        return subprocess.run(
            [self.hiroba, "run", "-n", str(nodes), "-t", str(threads), str(self.program), kind],
            env=dict(os.environ, **settings), capture_output=True, text=True, timeout=120)

    def check(self, kind, nodes, threads, settings, mode):
        done = self.run(kind, nodes, threads, HIROBA_RACE=mode, **settings)
        told = "write-write race" in done.stderr
        if kind in RACES:
            named = re.search(r"\(total in race_kinds, race_kinds\.c:\d+\)", done.stderr)
            right = told and named and done.returncode == (1 if mode == "abort" else 0)
        elif kind == "single_nowait":  # by luck it may be right
            right = done.stdout == "right\n" or told
        else:
            right = not told and done.stdout == "right\n" and done.returncode == 0
        if not right:
            self.faults.append(f"{kind}, {nodes} nodes of {threads}, {settings}, {mode}: status "
                               f"{done.returncode}\n{done.stdout}{done.stderr}")

    def check_all(self, runs):
        for _ in range(runs):
            for engine in ENGINES:
                for provider in PROVIDERS:
                    settings = dict(HIROBA_FAULT_ENGINE=engine, HIROBA_PROVIDER=provider)
                    shapes = ((2, 1), (4, 2)) if runs == 1 else ((2, 1), (2, 2), (4, 1), (4, 2))
                    for nodes, threads in shapes:
                        for kind in (*RACES, *ORDERED, "single_nowait"):
                            self.check(kind, nodes, threads, settings, "report")
                    for kind in RACES:
                        self.check(kind, 2, 1, settings, "abort")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "races"
        subprocess.run([arguments.cc, "-g", "-O1", "-fopenmp", "-o", program, SOURCE], check=True)
        runs = Runs(arguments.hiroba, program)
        barrier = rf"races\.c:{line_of('the barrier')} \(main\._omp_fn\.0\)"
        where = rf"by nodes 0 and 1, seen by node [01] (at its barrier at {barrier}|{PUBLISHED})\.$"
        differing = [
            rf"4 bytes at 0x[0-9a-f]+ \(counter\+2048 in races, races\.c:{line_of('counter')}\) {where}",
            rf"\(in no variable: heap\) {where}",
            rf"\(on the stack of thread 0 of node 0({FRAME})?\) {where}",
        ]
        same = rf"\(same_value\+2048 in races, races\.c:{line_of('same_value')}\) {where}"
        for engine in ENGINES:
            for provider in PROVIDERS:
                runs.expect_races(engine, provider, "off", [])
                runs.expect_races(engine, provider, "report", differing)
                runs.expect_races(engine, provider, "all", [*differing, same])
            runs.expect_abort(engine)
            runs.expect_places(engine, barrier)
        for pattern in {*differing, same} - runs.at_barriers:
            runs.faults.append(f"no run saw it at a barrier: {pattern}")
    if runs.frames == 0:
        runs.faults.append("no run names the frame of the variable on the stack")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "race_kinds"
        subprocess.run([arguments.cc, "-g", "-O1", "-fopenmp", "-o", program, KINDS], check=True)
        kinds = Kinds(arguments.hiroba, program)
        kinds.check_all(arguments.runs)
    runs.faults += kinds.faults
    print("\n".join(runs.faults) or f"races: all told, none invented; {kinds.runs} runs of kinds")
    return 1 if runs.faults else 0


if __name__ == "__main__":
    sys.exit(main())
