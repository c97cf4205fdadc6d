#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs each race and each hand-over by a flag many times, and prints a table: program x shape.

A shape is an engine, a provider and a number of nodes, of two threads each. What a run was:
    right    its result is, and no race is told; of a program with a race also by luck
    told     a race was told with its variable's name; with HIROBA_RACE=abort it also ended the job
    SILENT   a wrong result, or a race, without a word;  INVENTED  a race told of a program without
    HANG     it did not end in time;  FAILED  any other status or a node that executed no region
A program of race_kinds.c other than its ordered ones has a race: it must be told in every run, save
`single_nowait`, which may be right. The last four kinds of rows are races under HIROBA_RACE=abort.

    order_runs.py --hiroba build/bin/hiroba --runs 20                       an hour or more
    order_runs.py ... --only store plain --nodes 2 --providers shm          a piece of it
    order_runs.py ... --between-hosts        2 network namespaces and what `auto` takes, as root
    order_runs.py ... --to runs.txt          adds each run to a file, and leaves out what is there
    order_runs.py --table runs.txt           prints the table of such a file
"""
import argparse
import collections
import contextlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import host_nets
from clean_environment import clean_environment
from compare import participation
from race_runs import ENGINES, KINDS, ORDERED, PROVIDERS, RACES

FLAGS = pathlib.Path(__file__).parent / "programs/flag_kinds.c"
ABORT = "HIROBA_RACE=abort"
GOOD = ("right", "told")
SECONDS = 120  # of wall time: a hang, and no busy machine
Shape = collections.namedtuple("Shape", "engine provider nodes")
Row = collections.namedtuple("Row", "kind mode")


def build(folder):
    """Both programs, as any user would."""
    for source in (FLAGS, KINDS):
        subprocess.run(["gcc", "-g", "-O1", "-fopenmp", source, "-o", folder / source.stem], check=True)


def rows_of(folder):
    flags = subprocess.run([folder / FLAGS.stem], stdout=subprocess.PIPE, text=True, check=True)
    kinds = flags.stdout.split() + [*ORDERED, *RACES, "single_nowait"]
    return [Row(kind, "") for kind in kinds] + [Row(kind, ABORT) for kind in RACES]


def outcome(row, done, nodes):
    """What the finished run was."""
    told = "write-write race" in done.stderr
    racy = row.kind in RACES or row.kind == "single_nowait"
    if told and not racy:
        return "INVENTED"
    aborted = row.mode == ABORT and told and "HIROBA_RACE=abort" in done.stderr
    if done.returncode != (1 if aborted else 0) and not (done.stdout == "wrong\n"):
        return "FAILED"
    if told:
        return "told" if re.search(r"\((total|sum)(\+\d+)? in", done.stderr) else "FAILED"
    if row.kind in RACES or done.stdout != "right\n":
        return "SILENT"
    part = participation(done.stderr.encode())
    # `flag` of race_kinds.c is a team of two.
    wanted = 2 if row.kind == "flag" else nodes
    return "right" if sum(count > 0 for count in part.values()) >= wanted else "FAILED"


def start(hiroba, hosts, nodes):
    """The words that start a job of so many nodes of two threads, on this host or on both of `hosts`."""
    if not hosts:
        return [hiroba, "run", "-n", str(nodes), "-t", "2"]
    spread = ",".join(f"{name}:{nodes // 2}" for name in hosts.names)
    return hosts.at_home(hiroba, "run", "--hosts", spread, "--ssh", "ip netns exec", "-t", "2")


def run(hiroba, hosts, folder, row, shape, details):
    program = folder / (KINDS.stem if row.kind in (*ORDERED, *RACES, "single_nowait") else FLAGS.stem)
    environment = clean_environment("OMP_")
    environment.update(HIROBA_FAULT_ENGINE=shape.engine, HIROBA_STATS="1",
                       HIROBA_PROVIDER="auto" if hosts else shape.provider,
                       HIROBA_RACE="abort" if row.mode else "report")
    try:
        done = subprocess.run([*start(hiroba, hosts, shape.nodes), program, row.kind], env=environment,
                              capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "HANG"
    what = outcome(row, done, shape.nodes)
    if what not in GOOD:
        print(f"{' '.join(row)} {' '.join(map(str, shape))}: {what}, status {done.returncode}\n"
              f"{done.stdout}{done.stderr}", file=details, flush=True)
    return what


def read_runs(path):
    """Outcomes by row and shape, from a file of lines `kind mode engine provider nodes outcome`."""
    counts = collections.defaultdict(collections.Counter)
    if path and pathlib.Path(path).exists():
        for line in pathlib.Path(path).read_text().splitlines():
            kind, mode, engine, provider, nodes, what = line.split("\t")
            counts[Row(kind, mode), Shape(engine, provider, int(nodes))][what] += 1
    return counts


def cell(counter):
    """`20 right`, or each outcome with its number."""
    return ", ".join(f"{counter[what]} {what}" for what in sorted(counter)) or "-"


def row_name(row):
    return f"`{row.kind}`" + (f", `{row.mode}`" if row.mode else "")


def table(counts, name_of=row_name, good=GOOD):
    """The table in Markdown, and how many runs were none of `good`."""
    rows = list(dict.fromkeys(row for row, _ in counts))
    shapes = sorted({shape for _, shape in counts}, key=lambda s: (s.nodes, s.provider, s.engine))
    lines = ["| program | " + " | ".join(f"{s.nodes} nodes, {s.provider}, {s.engine}" for s in shapes) + " |",
             "|---" * (len(shapes) + 1) + "|"]
    for row in rows:
        lines.append("| " + " | ".join([name_of(row)] + [cell(counts[row, shape]) for shape in shapes]) + " |")
    bad = sum(number for counter in counts.values() for what, number in counter.items() if what not in good)
    return "\n".join(lines), bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", default="build/bin/hiroba")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", nargs="+", help="names of programs")
    parser.add_argument("--nodes", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--providers", nargs="+", default=PROVIDERS)
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--between-hosts", action="store_true", help="half of the nodes on each")
    parser.add_argument("--to", help="file to add each run to")
    parser.add_argument("--table", help="only print the table of such a file")
    options = parser.parse_args()
    if options.between_hosts:
        options.providers = ["hosts"]
        if missing := host_nets.why_missing():
            parser.error(f"--between-hosts: {missing}")
    counts = read_runs(options.table or options.to)
    if not options.table:
        two_hosts = host_nets.Hosts(2) if options.between_hosts else contextlib.nullcontext()
        with tempfile.TemporaryDirectory() as name, two_hosts as hosts:
            folder = pathlib.Path(name)
            build(folder)
            rows = [row for row in rows_of(folder) if not options.only or row.kind in options.only]
            if not rows:
                parser.error(f"no program is called {' '.join(options.only)}")
            shapes = [Shape(*words) for words in
                      itertools.product(options.engines, options.providers, options.nodes)]
            record = open(options.to or os.devnull, "a", encoding="ascii")
            for shape, row in itertools.product(shapes, rows):
                for _ in range(sum(counts[row, shape].values()), options.runs):
                    what = run(options.hiroba, hosts, folder, row, shape, sys.stderr)
                    counts[row, shape][what] += 1
                    print(*row, *shape, what, sep="\t", file=record, flush=True)
    text, bad = table(counts)
    print(text)
    if bad:
        sys.exit(f"{bad} runs were neither right nor told")


if __name__ == "__main__":
    main()
