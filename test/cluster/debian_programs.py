#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Debian's own sumaclust, clustalo and kalign (tasks), untouched, bare and under `hiroba run`.

The inputs are made here from a seed. A run passes when its output file equals the bare run's byte
for byte, the status is 0, and every node took part. Skipped (status 77) when
none of them is installed.

    debian_programs.py --hiroba build/bin/hiroba --sequences 1000 --proteins 12   every check's
    debian_programs.py --hiroba build/bin/hiroba --limit 7200       10^3 sequences for both

clustalo adds to shared floats with an atomic operation for each matrix element, some 50,000 for a
pair of sequences, all of which travel: hence fewer sequences for it in every check.
"""
import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from clean_environment import clean_environment

SKIPPED = 77
PROTEIN, DNA = "ACDEFGHIKLMNPQRSTVWY", "acgt"


def mutate(sequence, alphabet, rate, source):
    """Substitutions, insertions and deletions, in this proportion: 3 to 1 to 1."""
    result = []
    for letter in sequence:
        draw = source.random()
        if draw < rate * 0.6:
            result.append(source.choice(alphabet))
        elif draw < rate * 0.8:
            result.append(letter + source.choice(alphabet))
        elif draw >= rate:
            result.append(letter)
    return "".join(result)


def write_families(path, count, length, alphabet, rate, seed, title):
    """`count` sequences around a few ancestors; each is different, so that their order matters."""
    source = random.Random(seed)
    ancestors = ["".join(source.choice(alphabet) for _ in range(length))
                 for _ in range(max(2, count // 40))]
    with open(path, "w") as file:
        for number in range(count):
            sequence = mutate(source.choice(ancestors), alphabet, rate, source)
            file.write(f">s{number}{title.format(source.randint(1, 50))}\n{sequence}\n")


class Program:
    def __init__(self, name, arguments, write, path=None, counter=b"parallel_regions"):
        self.name, self.arguments, self.write = name, arguments, write
        self.path = path or shutil.which(name)
        self.counter = counter  # of what each node must have had its part


def programs(directory, options, threads):
    dna, protein, many = (directory / f"{name}.fasta" for name in ("dna", "protein", "many"))
    return [
        Program("sumaclust", lambda out: ["-p", str(threads), "-t", "0.9", "-F", str(out),
                                          "-O", str(out) + ".map", str(dna)],
                lambda: write_families(dna, options.sequences, 120, DNA, 0.05, 1, "; count={};")),
        Program("clustalo", lambda out: ["--threads", str(threads), "-i", str(protein),
                                         "-o", str(out), "--force"],
                lambda: write_families(protein, options.proteins, 100, PROTEIN, 0.3, 2, "")),
        # Its command is a script that picks one of several binaries; it uses tasks.
        Program("kalign", lambda out: ["-n", str(threads), "-i", str(many), "-o", str(out)],
                lambda: write_families(many, 400, 150, PROTEIN, 0.3, 2, ""),
                shutil.which("/usr/lib/kalign/kalign-plain"), b"tasks_executed"),
    ]


def run(command, threads, statistics, limit):
    environment = clean_environment("OMP_")
    environment["OMP_NUM_THREADS"] = str(threads)
    if statistics:
        environment["HIROBA_STATS"] = "1"
    begin = time.monotonic()
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, b"", limit
    return done.returncode, done.stderr, time.monotonic() - begin


def contents(path):
    both = [path, pathlib.Path(str(path) + ".map")]
    return [one.read_bytes() if one.exists() else None for one in both]


def idle_nodes(stderr, nodes, counter):
    row = re.search(rb"^" + counter + rb"((?: +[\d-]+)+)$", stderr, re.MULTILINE)
    regions = row.group(1).split()[:nodes] if row else []
    return [node for node in range(nodes) if node >= len(regions) or regions[node] in (b"0", b"-")]


def compare(options, program, nodes, directory):
    """Returns what is wrong, or nothing, and prints both times."""
    path = program.path
    bare, spread = directory / f"{program.name}.bare", directory / f"{program.name}.{nodes}"
    status, stderr, seconds = run([path] + program.arguments(bare), nodes, False, options.limit)
    if status != 0 or not contents(bare)[0]:
        return f"the bare run gave status {status}: {stderr[-300:].decode(errors='replace')}"
    # sumaclust caps -p at the cores it sees, so the team is asked for in the environment as well.
    got, got_stderr, got_seconds = run(
        [options.hiroba, "run", "-n", str(nodes), "--threads", "1", "--", path] +
        program.arguments(spread), nodes, True, options.limit)
    print(f"     {program.name} on {nodes} nodes: {got_seconds:.2f} s; bare with {nodes} threads: "
          f"{seconds:.2f} s", flush=True)
    wrong = []
    if got is None:
        wrong.append(f"not through after {options.limit} s")
    elif got != 0:
        wrong.append(f"status {got}: {got_stderr[-600:].decode(errors='replace')}")
    elif contents(spread) != contents(bare):
        wrong.append("the output differs from the bare run's")
    elif idle := idle_nodes(got_stderr, nodes, program.counter):
        wrong.append(f"nodes {idle} show no {program.counter.decode()}")
    return "; ".join(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--proteins", type=int, default=1000)
    parser.add_argument("--nodes", default="2,4")
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=900, help="seconds for each run")
    options = parser.parse_args()
    options.hiroba = str(pathlib.Path(options.hiroba).resolve())

    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="debian") as name:
        directory = pathlib.Path(name)
        for nodes in [int(n) for n in options.nodes.split(",")]:
            for program in programs(directory, options, nodes):
                if options.only not in program.name:
                    continue
                if program.path is None:
                    print(f"skip {program.name}: not installed (apt-get install {program.name})")
                    continue
                program.write()
                wrong = compare(options, program, nodes, directory)
                label = f"{program.name} on {nodes} nodes"
                print(f"FAIL {label}: {wrong}" if wrong else f"ok   {label}", flush=True)
                passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    if not passed and not failed:
        return SKIPPED
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
