#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does a program lose by the second host? Two hosts that are network namespaces, each bound to a core of its own, one
thread each, over udp, beside one thread of one of them, in turns.

    between_hosts.py --hiroba build/bin/hiroba --examples build/examples [--repeat 3] [--only NAME ...]
    between_hosts.py ... --npb NPB/bin --classes A      cg.A and so on, built by plain gcc, too
    between_hosts.py ... --also 'kmeans=./kmeans -i data' LULESH=...      whole processes, whose output must agree
    between_hosts.py ... --settings spread                                 every region on both hosts
    between_hosts.py ... --record docs/results/between_hosts.csv

Every run must verify. As root. Prints a row a program: medians of the seconds that it tells, the ratio, where its regions
ran. The hosts' link is a bridge in memory: it has neither the latency nor the bandwidth of a real one.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "test/cluster"))
import host_nets  # noqa: E402
import record  # noqa: E402
from clean_environment import clean_environment  # noqa: E402

NPB = ("ep", "cg", "mg", "ft", "is", "bt", "sp", "lu")
PATTERNS = ("serial_locks", "atomic_start", "filter", "tables", "graph", "wavefront", "small_regions")
EXAMPLES = (("EP, class A", "ep", ["A"]), ("CG, class A", "cg", ["A"]), ("heat, 2048², 100 steps", "heat", ["2048", "100"]),
            ("mandelbrot, 2000²", "mandelbrot", ["2000"]), ("histogram", "histogram", ["200000"]),
            ("vectors", "vectors", ["400000"]))
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


@dataclasses.dataclass
class Program:
    title: str
    command: list
    seconds: str = ""   # what it tells of its time; empty: the whole process counts
    verified: str = ""  # empty: the output is compared


def programs(options, folder):
    for title, name, arguments in EXAMPLES:
        yield Program(title, [str(options.examples / name), *arguments], r"seconds\s+([\d.]+)", "VERIFICATION SUCCESSFUL")
    patterns = folder / "patterns"
    source = pathlib.Path(__file__).parent / "openmp" / "patterns.c"
    subprocess.run(["gcc", "-O3", "-march=native", "-fopenmp", source, "-o", patterns], check=True)
    for name in PATTERNS:
        yield Program(name, [str(patterns), name], r"right ([\d.]+) s", r"^right ")
    for size in options.classes if options.npb else ():
        for name in NPB:
            if (options.npb / f"{name}.{size}").exists():
                yield Program(f"{name.upper()}, class {size}, C++ port", [str(options.npb / f"{name}.{size}")],
                              r"Time in seconds\s*=\s*([\d.]+)", r"Verification\s+=\s+SUCCESSFUL")
    for text in options.also:
        title, _, command = text.partition("=")
        yield Program(title, shlex.split(command))


def agree(one, other):
    """But for lines that tell times, and for the order in which sums were taken."""
    def lines(text):
        return [line for line in text.splitlines() if not re.search("time|second|elapsed|/s", line, re.IGNORECASE)]
    if len(lines(one)) != len(lines(other)):
        return False
    for mine, theirs in zip(lines(one), lines(other)):
        if NUMBER.sub("", mine) != NUMBER.sub("", theirs):
            return False
        for a, b in zip(map(float, NUMBER.findall(mine)), map(float, NUMBER.findall(theirs))):
            if abs(a - b) > 1e-6 * max(abs(a), abs(b)):
                return False
    return True


def run(program, command, environment, limit):
    """Its seconds, what it printed, and what hiroba said."""
    start = time.monotonic()
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit,
                          check=False, errors="replace")
    whole = time.monotonic() - start
    told = re.search(program.seconds, done.stdout) if program.seconds else None
    if done.returncode != 0 or (program.seconds and not told) or not re.search(program.verified, done.stdout, re.MULTILINE):
        sys.exit(f"{' '.join(command)}: status {done.returncode}: {done.stdout[-500:]}{done.stderr[-800:]}")
    return float(told[1]) if told else whole, done.stdout, done.stderr


def measure(options, hosts, program):
    """Medians of one thread and of two hosts, and whether regions stayed on the first."""
    environment = {**clean_environment("OMP_", "GOMP_"), "HIROBA_REGIONS": options.settings}
    alone = hosts.at_home(*program.command)
    both = hosts.at_home(options.hiroba, "run", "--hosts", ",".join(hosts.names), "--ssh", hosts.enter, "-t", "1",
                         *program.command)
    one, two, stayed = [], [], False
    for _ in range(options.repeat):
        seconds, wanted, _ = run(program, alone, {**environment, "OMP_NUM_THREADS": "1"}, options.limit)
        one.append(seconds)
        seconds, printed, said = run(program, both, environment, options.limit)
        two.append(seconds)
        stayed |= "stayed on node 0" in said
        if not program.verified and not agree(wanted, printed):
            sys.exit(f"{program.title}: two hosts printed {printed[-500:]!r}, one thread {wanted[-500:]!r}")
    return statistics.median(one), statistics.median(two), stayed


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", required=True, type=os.path.abspath)
    parser.add_argument("--examples", required=True, type=pathlib.Path)
    parser.add_argument("--npb", type=pathlib.Path)
    parser.add_argument("--classes", nargs="+", default=["A"])
    parser.add_argument("--also", nargs="+", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="parts of names")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--settings", choices=("auto", "spread"), default="auto")
    parser.add_argument("--limit", type=int, default=600, help="seconds for one run")
    parser.add_argument("--record", help="file to add the figures to")
    return parser.parse_args()


def main():
    options = parse()
    if missing := host_nets.why_missing():
        sys.exit(f"between_hosts.py: {missing}")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("between_hosts.py: two hosts need two cores")
    with tempfile.TemporaryDirectory(prefix="between_hosts") as folder, \
            host_nets.Hosts(2, traps=False, cores=cores[:2]) as hosts:
        for program in programs(options, pathlib.Path(folder)):
            if options.only and not any(part in program.title for part in options.only):
                continue
            one, two, stayed = measure(options, hosts, program)
            title = program.title + (", spread" if options.settings == "spread" else "")
            print(f"{title:32} {one:8.3f} s  {two:8.3f} s  {two / one:6.2f}" + ("  some regions stayed" if stayed else ""),
                  flush=True)
            if options.record:
                row = {"program": title, "one thread alone": f"{one:.2f} s", "2 nodes of one thread": f"{two:.2f} s",
                       "times one thread": f"{two / one:.2f}"}
                record.append(options.record, options.hiroba, row,
                              "two network namespaces of a core each, provider udp")


if __name__ == "__main__":
    main()
