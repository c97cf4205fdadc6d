#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The NAS Parallel Benchmarks, untouched, on nodes: right every time, and how fast.

Programs are looked for as FOLDER/cg.S (kernel, class), built by plain gcc from any OpenMP port.
A run counts when it verifies once, exits with 0, and every node took part in a region.

    npb.py --hiroba build/bin/hiroba --programs NPB/bin --classes S --nodes 2 4 --repeat 10 \\
           --engines uffd mprotect --providers shm udp
    npb.py ... --kernels cg bt --classes A --compare --sequential NPB-without-openmp/bin --worst 3
    npb.py ... --kernels cg mg --classes A --compare --between-hosts       as root: namespaces
    npb.py ... --nodes 2 4 --starters run mpirun srun                      srun: a Slurm of this machine

--compare alternates hiroba, libgomp with as many threads, and the sequential program. --worst K
says for the K slowest beside libgomp where HIROBA_STATS=full saw the time go.
"""
import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "test/cluster"))
from clean_environment import clean_environment  # noqa: E402
import exec_runs  # noqa: E402
import host_nets  # noqa: E402

KERNELS = ("ep", "cg", "mg", "ft", "is", "bt", "sp", "lu")
SECONDS = re.compile(r"Time in seconds\s*=\s*([\d.]+)")
REGIONS = re.compile(r"^parallel_regions((?: +\d+)+)$", re.MULTILINE)
VERIFIED = re.compile(r"Verification\s+=\s+SUCCESSFUL")


@dataclasses.dataclass
class Run:
    seconds: float  # by the program's own clock, or of the whole process where that is broken
    failure: str    # empty: it counts
    told: str       # what hiroba said


def execute(command, environment, limit_s):
    """(status or None after the limit, stdout, stderr, seconds of the process)"""
    start = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=limit_s)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            out, err = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        status = None
    return status, out, err, time.monotonic() - start


def why_not(status, out, err, nodes, team):
    if status is None:
        return "not over in time"
    if status != 0:
        return f"status {status}: {err.strip().splitlines()[-1:]}"
    if len(VERIFIED.findall(out)) != 1 or "UNSUCCESSFUL" in out:
        return "not verified exactly once"
    if nodes:
        row = REGIONS.search(err)
        regions = [int(word) for word in row.group(1).split()[:-1]] if row else []
        if len(regions) != nodes or (team > 1 and min(regions) == 0):
            return f"regions of the nodes: {regions}"
    return ""


def plain_environment(threads):
    kept = clean_environment("OMP_")
    return {**kept, "OMP_NUM_THREADS": str(threads)}


def timed(command, environment, limit_s, nodes=0, threads=1):
    status, out, err, whole = execute(command, environment, limit_s)
    failure = why_not(status, out, err, nodes, nodes * threads)
    own = SECONDS.search(out)
    seconds = float(own.group(1)) if own else whole
    return Run(seconds if seconds <= whole else whole, failure, err)


class Bench:
    """The launcher, the programs, and perhaps hosts to spread them over."""

    def __init__(self, options, hosts=None):
        self.options, self.hosts = options, hosts
        self.hiroba = str(options.hiroba.resolve())

    def program(self, kernel, size):
        return str((self.options.programs / f"{kernel}.{size}").resolve())

    def on_nodes(self, kernel, size, nodes, *, threads=1, stats="1", engine=None, provider=None,
                 starter="run"):
        words = [self.hiroba, "run" if starter == "run" else "exec", "--threads", str(threads)]
        if starter == "mpirun":
            words = exec_runs.mpirun("-n", str(nodes), *words)
        elif starter == "srun":
            words = ["srun", "--mpi=pmix", "--overcommit", "-n", str(nodes), *words]
        elif self.hosts:
            words += ["--hosts", ",".join(self.hosts.names[:nodes]), "--ssh", self.hosts.enter]
        else:
            words += ["-n", str(nodes)]
        words.append(self.program(kernel, size))
        environment = plain_environment(nodes * threads)
        environment.pop("OMP_NUM_THREADS")
        environment["HIROBA_STATS"] = stats
        if engine:
            environment["HIROBA_FAULT_ENGINE"] = engine
        if provider and not self.hosts:
            environment["HIROBA_PROVIDER"] = provider
        command = self.hosts.at_home(*words) if self.hosts else words
        return timed(command, environment, self.options.limit, nodes, threads)

    def alone(self, kernel, size, threads, folder=None):
        program = (folder or self.options.programs).resolve() / f"{kernel}.{size}"
        # One thread of one host, which has one core.
        bound = ["taskset", "-c", str(self.hosts.core(0))] if self.hosts and threads == 1 else []
        return timed([*bound, str(program)], plain_environment(threads), self.options.limit)

    def placed(self):
        """What the rows call the way the nodes talk."""
        return ["hosts"] if self.hosts else self.options.providers


def median(runs):
    good = [run.seconds for run in runs if not run.failure]
    return round(statistics.median(good), 3) if good else None


def show(row, as_json):
    print(json.dumps(row) if as_json else "  ".join(f"{k} {v}" for k, v in row.items()),
          flush=True)


def one_row(bench, kernel, size, nodes, engine, provider, starter):
    options = bench.options
    mine, threads, serial = [], [], []
    for _ in range(options.repeat):
        mine.append(bench.on_nodes(kernel, size, nodes, engine=engine, provider=provider,
                                   starter=starter))
        if options.compare:
            threads.append(bench.alone(kernel, size, nodes))
            serial.append(bench.alone(kernel, size, 1, options.sequential))
    failures = [run.failure for run in mine + threads + serial if run.failure]
    row = {"program": f"{kernel}.{size}", "nodes": nodes, "engine": engine, "provider": provider,
           "starter": starter, "right": f"{sum(not run.failure for run in mine)}/{len(mine)}", "seconds": median(mine)}
    if options.compare:
        row |= {"libgomp": median(threads), "sequential": median(serial)}
        if row["seconds"] and row["libgomp"]:
            row["ratio"] = round(row["seconds"] / row["libgomp"], 2)
    if failures:
        row["failures"] = failures
    show(row, options.json)
    return row, len(failures)


def tell_worst(bench, rows):
    slow = sorted((row for row in rows if "ratio" in row), key=lambda row: -row["ratio"])
    for row in slow[:bench.options.worst]:
        kernel, size = row["program"].split(".")
        told = bench.on_nodes(kernel, size, row["nodes"], stats="full", engine=row["engine"],
                              provider=row["provider"]).told
        counters, _, places = told.partition("\n\n")
        print(f"\n{row['program']}, {row['ratio']} x libgomp:\n{counters}\n\n"
              + "\n".join(places.splitlines()[:9]), flush=True)


def check_programs(options):
    folders = [options.programs] + ([options.sequential] if options.sequential else [])
    for folder, kernel, size in itertools.product(folders, options.kernels, options.classes):
        if not os.access(folder / f"{kernel}.{size}", os.X_OK):
            sys.exit(f"{folder / f'{kernel}.{size}'}: no such program")


def run_all(bench):
    options = bench.options
    check_programs(options)
    rows, failed = [], 0
    for size, kernel, nodes, engine, provider, starter in itertools.product(
            options.classes, options.kernels, options.nodes, options.engines, bench.placed(),
            options.starters):
        row, failures = one_row(bench, kernel, size, nodes, engine, provider, starter)
        rows.append(row)
        failed += failures
    tell_worst(bench, rows)
    right = sum(int(row["right"].split("/")[0]) for row in rows)
    print(f"{right} passed, {failed} failed")
    return 1 if failed else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hiroba", type=Path, required=True, help="the launcher")
    parser.add_argument("--programs", type=Path, required=True, help="folder of cg.S and so on")
    parser.add_argument("--sequential", type=Path, help="the same, built without OpenMP")
    parser.add_argument("--classes", nargs="+", default=["S"])
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS))
    parser.add_argument("--nodes", nargs="+", type=int, default=[2])
    parser.add_argument("--engines", nargs="+", default=["uffd"])
    parser.add_argument("--providers", nargs="+", default=["shm"])
    parser.add_argument("--starters", nargs="+", default=["run"], choices=["run", "mpirun", "srun"])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--limit", type=int, default=600, help="seconds for one run")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--between-hosts", action="store_true", help="a namespace with a core of its own for each node")
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


@contextlib.contextmanager
def slurm_if(wanted):
    """What `srun` needs, for as long as it lasts."""
    if not wanted:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="hiroba_npb") as folder, \
            exec_runs.slurm_of_this_machine(Path(folder)) as configuration:
        os.environ["SLURM_CONF"] = configuration
        yield


def main():
    options = parse()
    if options.between_hosts and options.starters != ["run"]:
        sys.exit("--starters: mpirun and srun start on this host. Leave --between-hosts out")
    if not options.between_hosts:
        with slurm_if("srun" in options.starters):
            return run_all(Bench(options))
    missing = host_nets.why_missing()
    if missing:
        sys.exit(f"--between-hosts: {missing}")
    with host_nets.Hosts(max(options.nodes), traps=False, cores=sorted(os.sched_getaffinity(0))) as hosts:
        return run_all(Bench(options, hosts))


if __name__ == "__main__":
    sys.exit(main())
