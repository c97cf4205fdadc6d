#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs every program of a folder bare and many times on nodes, and prints a table: program x shape.

A program is one source file of C, C++ or Fortran, built as any user would. A shape is an engine, a
provider and a number of nodes, of two threads each. What a run was:
    right    status and output are those of a bare run with as many threads, but for the order of
             lines, for addresses, and for numbers that are times (with a point, or before `us`)
    told     a race was told: its result may be any
    refused  the job ended with status 78 and a line
    SILENT   another result without a word;  HANG  it did not end in time: its stacks are printed

    given_programs.py --hiroba build/bin/hiroba --programs FOLDER --runs 20
    given_programs.py ... --with atom.c=-DM=0 --with atom.c=-DM=1     each such set of flags is a program
    given_programs.py ... --to runs.txt     adds each run to a file, and leaves out what is there
    given_programs.py --hiroba build/bin/hiroba --self-test     that outcomes are told apart
"""
import argparse
import collections
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from clean_environment import clean_environment
from order_runs import Shape, cell, table
from race_runs import ENGINES, PROVIDERS

COMPILERS = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}
GOOD = ("right", "told", "refused")
REFUSED = 78
THREADS = 2
STACK_SECONDS = 5
Program = collections.namedtuple("Program", "name path")


def build(source, flags, folder):
    """Empty: it cannot be built here."""
    name = " ".join([source.name, *flags])
    path = folder / re.sub(r"[^\w.]", "_", name)
    path.mkdir()
    done = subprocess.run([COMPILERS[source.suffix], "-g", "-O1", "-fopenmp", *flags, source, "-o", path / "program"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name} is not built: {done.stderr.strip().splitlines()[0]}", file=sys.stderr)
        return None
    return Program(name, path / "program")


def plain(output):
    """Output without what differs between two bare runs."""
    output = re.sub(r"0x[0-9a-f]+", "ADDRESS", output)
    output = re.sub(r"\d+(?= us\b)|\d*\.\d+(e[+-]?\d+)?", "TIME", output)
    return sorted(output.splitlines())


def environment_of(shape):
    variables = clean_environment("OMP_")
    variables["OMP_NUM_THREADS"] = str(THREADS * shape.nodes)
    return variables


def run_bare(program, shape, seconds):
    """None, and a line, where the bare program itself takes too long: nothing can be said of it."""
    try:
        done = subprocess.run([program.path], cwd=program.path.parent, env=environment_of(shape), capture_output=True,
                              text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        print(f"{program.name} {' '.join(map(str, shape))}: bare it takes more than {seconds} s: left out",
              file=sys.stderr, flush=True)
        return None
    return done.returncode, plain(done.stdout)


def run_for(seconds, command, **more):
    """As subprocess.run; of a job that does not end in time the status is None, and its stacks are told."""
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    try:
        out, err = job.communicate(timeout=seconds)
        return subprocess.CompletedProcess(command, job.returncode, out, err)
    except subprocess.TimeoutExpired:
        subprocess.run([command[0], "stacks", str(job.pid)], stderr=subprocess.DEVNULL)
    try:
        job.communicate(timeout=STACK_SECONDS)
    except subprocess.TimeoutExpired:
        job.kill()
    out, err = job.communicate()
    return subprocess.CompletedProcess(command, None, out, err)


def run(options, program, shape, bare):
    variables = environment_of(shape)
    variables.update(HIROBA_FAULT_ENGINE=shape.engine, HIROBA_PROVIDER=shape.provider)
    command = [options.hiroba, "run", "-n", str(shape.nodes), "-t", str(THREADS), program.path]
    done = run_for(options.seconds, command, cwd=program.path.parent, env=variables)
    if done.returncode is None:
        print(f"{program.name} {' '.join(map(str, shape))}: HANG\n{done.stdout}{done.stderr}", file=sys.stderr, flush=True)
        return "HANG"
    if "write-write race" in done.stderr:
        return "told"
    if (done.returncode, plain(done.stdout)) == bare:
        return "right"
    if done.returncode == REFUSED and "hiroba" in done.stderr:
        return "refused"
    print(f"{program.name} {' '.join(map(str, shape))}: status {done.returncode}, bare {bare[0]}\n"
          f"{done.stdout}{done.stderr}", file=sys.stderr, flush=True)
    return "SILENT"


def read_runs(path):
    counts = collections.defaultdict(collections.Counter)
    if path and pathlib.Path(path).exists():
        for line in pathlib.Path(path).read_text().splitlines():
            name, engine, provider, nodes, what = line.split("\t")
            counts[name, Shape(engine, provider, int(nodes))][what] += 1
    return counts


def all_runs(options, sources, folder):
    """Each program's outcomes by name and shape."""
    flags = collections.defaultdict(list)
    for text in options.flags:
        name, _, words = text.partition("=")
        flags[name].append(words.split())
    programs = [build(source, words, folder) for source in sources for words in flags.get(source.name, [[]])]
    counts = read_runs(options.to)
    record = open(options.to or os.devnull, "a", encoding="utf-8")
    shapes = [Shape(*words) for words in itertools.product(options.engines, options.providers, options.nodes)]
    for shape, program in itertools.product(shapes, filter(None, programs)):
        missing = options.runs - sum(counts[program.name, shape].values())
        bare = run_bare(program, shape, options.seconds) if missing > 0 else None
        for _ in range(missing if bare else 0):
            what = run(options, program, shape, bare)
            counts[program.name, shape][what] += 1
            print(program.name, *shape, what, sep="\t", file=record, flush=True)
    return counts


SELF_TEST = {
    "right.c": ("int main(void) { int sum = 0;\n#pragma omp parallel reduction(+ : sum)\n sum += 1;\n"
                ' printf("%d, %d us\\n", sum, rand()); return 0; }', {"right"}),
    "told.c": ("int total;\nint main(void) {\n#pragma omp parallel\n total = 111 + omp_get_thread_num();\n"
               ' printf("%d\\n", total); return 0; }', {"told"}),
    "different.c": ('int main(void) { puts(getenv("HIROBA_PROVIDER") ? "nodes" : "bare"); return 0; }', {"SILENT"}),
    "refused.c": ("#include <pthread.h>\nint main(void) {\n#pragma omp parallel\n"
                  ' if (getenv("HIROBA_PROVIDER") && omp_get_thread_num() == 1) pthread_exit(NULL);\n return 0; }',
                  {"refused"}),
    "hang.c": ('int main(void) { while (getenv("HIROBA_PROVIDER")) { } return 0; }', {"HANG"}),
}


def self_test(options, folder):
    """Each small program is what it says. What hangs does so however long it is waited for."""
    options.runs, options.nodes = 1, [2]
    options.engines, options.providers = ENGINES[:1], PROVIDERS[:1]
    sources = {"HANG": [], "": []}
    for name, (text, outcomes) in SELF_TEST.items():
        path = folder / name
        path.write_text("#include <omp.h>\n#include <stdio.h>\n#include <stdlib.h>\n" + text + "\n")
        sources["HANG" if outcomes == {"HANG"} else ""].append(path)
    (folder / "built").mkdir()
    counts = {}
    for what, options.seconds in ("HANG", 5), ("", 30):
        counts |= all_runs(options, sources[what], folder / "built")
    wrong = 0
    for (name, _), counter in counts.items():
        if set(counter) != SELF_TEST[name][1]:
            wrong += 1
            print(f"{name}: {cell(counter)}, not {' '.join(SELF_TEST[name][1])}")
    return wrong + (len(counts) != len(SELF_TEST))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", type=pathlib.Path, default="build/bin/hiroba")
    parser.add_argument("--programs", type=pathlib.Path, help="the folder")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", nargs="+", help="names of files")
    parser.add_argument("--with", dest="flags", action="append", default=[], metavar="FILE=FLAGS")
    parser.add_argument("--nodes", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--providers", nargs="+", default=PROVIDERS)
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--seconds", type=int, default=120, help="of wall time: a hang, and no busy machine")
    parser.add_argument("--to", help="file to add each run to")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    options.hiroba = options.hiroba.resolve()
    with tempfile.TemporaryDirectory() as name:
        if options.self_test:
            sys.exit(self_test(options, pathlib.Path(name)) > 0)
        if not options.programs:
            parser.error("--programs is missing")
        sources = [path for path in sorted(options.programs.resolve().iterdir())
                   if path.suffix in COMPILERS and (not options.only or path.name in options.only)]
        text, bad = table(all_runs(options, sources, pathlib.Path(name)), "`{}`".format, GOOD)
    print(text)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
