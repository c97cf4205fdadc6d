#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many rounds of `single nowait` and atomics behind it (programs/single_rounds.c), two threads a node.

Each round's sum must be right, or a race told of its variable: which of the two is luck. Prints how
many were which. A second job beside each makes threads lose their processors where they should not.

    single_rounds.py --hiroba build/bin/hiroba [--runs 1] [--rounds 5000] [--nodes 2]
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from clean_environment import clean_environment
from compare import participation
from race_runs import ENGINES, PROVIDERS

SOURCE = pathlib.Path(__file__).parent / "programs/single_rounds.c"
LIMIT_SECONDS = 240  # of wall time: a hang, and no busy machine


def start(options, program, engine, provider):
    environment = clean_environment("OMP_")
    environment.update(HIROBA_FAULT_ENGINE=engine, HIROBA_PROVIDER=provider, HIROBA_STATS="1",
                       HIROBA_RACE="all")
    return subprocess.Popen([options.hiroba, "run", "-n", str(options.nodes), "-t", "2", program,
                             str(options.rounds)], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def look_at(job, nodes):
    """What was wrong with the run, or nothing; the rounds that were wrong, and how many were told."""
    out, err = job.communicate(timeout=LIMIT_SECONDS)
    told = {int(address, 16) & ~7 for address in
            re.findall(r"write-write race: \d+ bytes at 0x([0-9a-f]+)", err)}
    wrong = re.findall(r"0x([0-9a-f]+) (\d+): (\S+)", out)
    silent = [f"round {number}: {saw}" for address, number, saw in wrong if int(address, 16) not in told]
    part = participation(err.encode())
    if job.returncode != 0 or not out.endswith("end\n") or sum(n > 0 for n in part.values()) < nodes:
        return f"status {job.returncode}, regions of nodes {part}\n{out[-300:]}{err[-600:]}", 0, 0
    return "wrong and not told: " + ", ".join(silent) if silent else "", len(wrong), len(told)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", default="build/bin/hiroba")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=2)
    options = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory() as name:
        program = pathlib.Path(name) / "single_rounds"
        subprocess.run(["gcc", "-g", "-O1", "-fopenmp", SOURCE, "-o", program], check=True)
        for engine in ENGINES:
            for provider in PROVIDERS:
                for _ in range(options.runs):
                    for job in [start(options, program, engine, provider) for _ in range(2)]:
                        fault, wrong, told = look_at(job, options.nodes)
                        print(f"{engine} {provider}: {wrong} of {options.rounds} wrong, {told} told {fault}",
                              flush=True)
                        faults += fault != ""
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
