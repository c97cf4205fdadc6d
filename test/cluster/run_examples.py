#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the examples bare and under `hiroba run`, and checks more than that they verify.

A run passes when it prints exactly one result line, verified; ends with the status of the bare
run; every node took part in at least one parallel region; all within its time limit. A program
that N nodes ran N times over, each alone, would verify too, but fail the other checks.

Usage: run_examples.py --hiroba build/bin/hiroba --examples build/examples [--matrix smoke|full]
"""

import argparse
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from clean_environment import clean_environment

RESULT = re.compile(r"\bVERIFICATION (SUCCESSFUL|FAILED)\b")
PARTICIPATION = re.compile(r"^hiroba: participation node (\d+): regions (\d+)$", re.MULTILINE)
REGIONS_ROW = re.compile(r"^parallel_regions\s+(.*)$", re.MULTILINE)
STATUS_ENVIRONMENT = 78


@dataclass(frozen=True)
class Case:
    """One row of a matrix."""
    example: str
    arguments: tuple = ()
    nodes: int = 2
    threads: int = 1
    engine: str = "auto"
    fixed: bool = False  # built with -no-pie
    repeats: int = 1
    limit_s: int = 60

    def program(self, folder):
        return [str(folder / (self.example + ("-fixed" if self.fixed else ""))), *self.arguments]

    def __str__(self):
        words = [self.example, *self.arguments]
        if self.fixed:
            words.append("(fixed)")
        return f"{' '.join(words)} on {self.nodes} x {self.threads}, {self.engine}"


@dataclass
class Outcome:
    status: int
    out: str
    err: str
    seconds: float
    timed_out: bool


STRONG = "histogram-strong"
OTHERS = ("heat", "mandelbrot", "histogram", "vectors", "fortran_common")


def smoke_matrix():
    yield Case("ep", ("S",))
    yield Case("cg", ("S",))
    yield Case("cg", ("S",), nodes=3, fixed=True)
    yield Case("cg", ("S",), threads=2, engine="mprotect")
    for example in OTHERS:
        yield Case(example)
        yield Case(example, nodes=3, fixed=True, engine="mprotect")
    yield Case(STRONG)


def full_matrix():
    for (nodes, threads), engine, fixed in itertools.product(
            ((1, 1), (2, 1), (4, 1), (2, 2)), ("uffd", "mprotect"), (False, True)):
        shape = dict(nodes=nodes, threads=threads, engine=engine, fixed=fixed)
        for example in ("ep", "cg"):
            yield Case(example, ("S",), repeats=20, **shape)
        for example in OTHERS:
            yield Case(example, repeats=20, **shape)
        if not fixed:
            yield Case(STRONG, repeats=20, **shape)
        for example in ("ep", "cg"):
            yield Case(example, ("W",), repeats=3, limit_s=180, **shape)
            yield Case(example, ("A",), limit_s=600, **shape)


def execute(command, environment, limit_s):
    """Runs a command in a process group of its own, which is gone when this returns."""
    start = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True)
    timed_out = False
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return Outcome(process.returncode, out, err, time.monotonic() - start, timed_out)


def plain_environment():
    return clean_environment()


def run_bare(case, folder):
    environment = plain_environment()
    environment["OMP_NUM_THREADS"] = str(case.nodes * case.threads)
    return execute(case.program(folder), environment, case.limit_s)


def run_on_nodes(case, hiroba, folder):
    environment = plain_environment()
    environment.pop("OMP_NUM_THREADS", None)
    environment.update(HIROBA_STATS="1", HIROBA_FAULT_ENGINE=case.engine)
    command = [str(hiroba), "run", "-n", str(case.nodes), "--threads", str(case.threads)]
    return execute(command + case.program(folder), environment, case.limit_s)


def regions_by_node(err):
    """In how many regions each node took part, by the launcher's own words."""
    regions = {int(node): int(count) for node, count in PARTICIPATION.findall(err)}
    row = REGIONS_ROW.search(err)
    if not regions and row:
        cells = row[1].split()[:-1]  # the last one is the sum
        regions = {node: int(cell) for node, cell in enumerate(cells) if cell.isdigit()}
    return regions


def faults(outcome, status_expected, nodes):
    """What is wrong with a run; `nodes` is 0 for a bare one."""
    if outcome.timed_out:
        yield f"still running after {outcome.seconds:.0f} s"
        return
    if outcome.status != status_expected:
        yield f"status {outcome.status}, natively {status_expected}"
    results = RESULT.findall(outcome.out)
    if len(results) != 1:
        yield f"{len(results)} result lines"
    if "FAILED" in results:
        yield "not verified"
    regions = regions_by_node(outcome.err)
    # On one node there is no other that could have done the work.
    for node in range(nodes if nodes > 1 else 0):
        if regions.get(node, 0) < 1:
            yield f"node {node} took part in no region"


def tail(text):
    return "\n".join("    | " + line for line in text.splitlines()[-12:])


def usable_engines(cases, hiroba, folder):
    """Engines that this machine has, each tried once: a job refuses one that it cannot have."""
    engines = {}
    for case in cases:
        if case.engine not in engines:
            outcome = run_on_nodes(case, hiroba, folder)
            missing = (case.engine == "uffd" and outcome.status == STATUS_ENVIRONMENT
                       and "uffd" in outcome.err)
            engines[case.engine] = not missing
            if missing:
                print(f"no uffd here, its cases are left out:\n{tail(outcome.err)}")
    return {engine for engine, usable in engines.items() if usable}


def run_case(case, hiroba, folder):
    """Returns (passed, failed)."""
    bare = run_bare(case, folder)
    wrong = list(faults(bare, 0, nodes=0))
    if wrong:
        print(f"FAIL {case}: bare: {', '.join(wrong)}\n{tail(bare.out + bare.err)}", flush=True)
        return 0, case.repeats
    passed = 0
    seconds = []
    for number in range(1, case.repeats + 1):
        outcome = run_on_nodes(case, hiroba, folder)
        wrong = list(faults(outcome, bare.status, case.nodes))
        if wrong:
            print(f"FAIL {case}, run {number}: {', '.join(wrong)}\n"
                  f"{tail(outcome.out + outcome.err)}", flush=True)
            continue
        passed += 1
        seconds.append(outcome.seconds)
    if passed == case.repeats:
        print(f"ok   {case}: {passed} of {case.repeats}, {min(seconds):.2f} s "
              f"(bare {bare.seconds:.2f} s)", flush=True)
    return passed, case.repeats - passed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hiroba", type=Path, required=True, help="the launcher")
    parser.add_argument("--examples", type=Path, required=True, help="folder of the programs")
    parser.add_argument("--matrix", choices=("smoke", "full"), default="smoke")
    parser.add_argument("--only", help="just the examples of this name")
    parser.add_argument("--nodes", type=int, help="just the cases of so many nodes")
    parser.add_argument("--engine", help="just the cases of this fault engine")
    parser.add_argument("--repeat", type=int, help="run each case so often")
    return parser.parse_args()


def main():
    wanted = arguments()
    cases = list(smoke_matrix() if wanted.matrix == "smoke" else full_matrix())
    cases = [case for case in cases
             if wanted.only in (None, case.example) and wanted.nodes in (None, case.nodes)
             and wanted.engine in (None, case.engine)]
    if wanted.repeat:
        cases = [Case(**{**case.__dict__, "repeats": wanted.repeat}) for case in cases]
    # These need gfortran and gcc; any other absence is a failure.
    for example in ("fortran_common", STRONG):
        if not (wanted.examples / example).exists():
            print(f"{example} was not built, its cases are left out")
            cases = [case for case in cases if case.example != example]
    for path in [wanted.hiroba, *(Path(case.program(wanted.examples)[0]) for case in cases)]:
        if not path.exists():
            sys.exit(f"run_examples: {path} does not exist")

    engines = usable_engines(cases, wanted.hiroba, wanted.examples)
    passed = failed = 0
    for case in cases:
        if case.engine in engines:
            good, bad = run_case(case, wanted.hiroba, wanted.examples)
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 0 if passed > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
