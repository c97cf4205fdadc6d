#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of hiroba's libraries that another launcher starts, and programs that call MPI, too.

Such processes join as one job (`mpirun -n 3 ./a.out`), or end with one line and status 78. A program
of MPI and OpenMP is one rank of MPI, whose threads run on all nodes. Each with Open MPI and with
MPICH; what this machine lacks is told and left out. Exits with 77 where there is neither.

    mpi_runs.py --hiroba build/bin/hiroba --examples build/examples
    mpi_runs.py --hiroba build/bin/hiroba --examples build/examples --slurm    as root: srun, too
"""
import argparse
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import exec_runs  # noqa: E402
import host_nets  # noqa: E402

HERE = pathlib.Path(__file__).parent.resolve()
ROOT = HERE.parents[1]
SUM_OF_HYBRID = {1: 1499975, 2: 2999975}


class Bench(exec_runs.Bench):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.examples = options.examples.resolve()
        self.library = pathlib.Path(self.hiroba).parents[1] / "lib"

    def compiled(self, mpi, source, *words):
        """A program of test/cluster/mpi, or nothing where there is no compiler for it."""
        compiler = f"{'mpicxx' if source.endswith('cpp') else 'mpicc'}.{mpi}"
        if shutil.which(compiler) is None:
            print(f"mpi_runs.py: there is no {compiler}: {source} is left out")
            return None
        program = self.folder / f"{pathlib.Path(source).stem}.{mpi}"
        subprocess.run([compiler, "-O2", "-Wall", f"-I{ROOT}/include", HERE / "mpi" / source, "-o",
                        program, f"-L{self.library}", f"-Wl,-rpath,{self.library}", *words],
                       check=True)
        return str(program)


def launcher(mpi, processes):
    if mpi == "openmpi":
        return exec_runs.mpirun("-n", str(processes), "--bind-to", "none")
    return ["mpirun.mpich", "-n", str(processes)]


def faults(ended, lines, what, status=0):
    """`lines` are what the program prints, in any order."""
    got, out, err = ended
    if got != status or sorted(out.splitlines()) != sorted(lines):
        yield f"{what}: status {got}, {out!r}, {err[-500:]!r}"


def joins(bench, mpi):
    """Programs of every library, over shm and udp; one process; under `hiroba exec`."""
    ring = str(bench.examples / "acp_ring")
    said = "100 rounds of {} ranks: VERIFICATION SUCCESSFUL"
    for words, ranks, more in [([ring], 2, {}), ([ring], 1, {}), ([ring], 3, {"HIROBA_PROVIDER": "udp"}),
                               ([bench.hiroba, "exec", ring], 2, {})]:
        ended = bench.run([*launcher(mpi, ranks), *words], **more)
        yield from faults(ended, [said.format(ranks)], f"{words} {more}")
    lines = [("spmd_sum", "spmd_sum: 3 nodes, total"), ("net_heat", "on each of 3 nodes"),
             ("gas_particles", "SUCCESSFUL"), ("kick_sieve", "SUCCESSFUL")]
    for name, line in lines[:4 if mpi == "openmpi" else 1]:
        got, out, err = bench.run([*launcher(mpi, 3), str(bench.examples / name)])
        if got != 0 or line not in out or out.count("SUCCESSFUL") != 1:
            yield f"{name}: status {got}, {out!r}, {err[-500:]!r}"


def beside_mpi(bench, mpi):
    """libacp and gas beside MPI calls, whichever comes first."""
    if program := bench.compiled(mpi, "beside_acp.c", "-lacp"):
        lines = [f"MPI {i} of 3, ACP {i} of 3, got {100 + (i + 2) % 3}, sum 303" for i in range(3)]
        for word in ("first", "late"):
            yield from faults(bench.run([*launcher(mpi, 3), program, word]), lines, word)
    if program := bench.compiled(mpi, "beside_gas.cpp", "-std=c++20", "-lhiroba_gas"):
        lines = [f"MPI {i} of 2, gas {i} of 2, sum 3" for i in range(2)]
        yield from faults(bench.run([*launcher(mpi, 2), program]), lines, "gas")
        ended = bench.run([*launcher(mpi, 2), bench.hiroba, "exec", program])
        yield from faults(ended, lines, "gas by exec")


def ends(bench, mpi):
    """A rank that leaves or dies ends the job, which nothing outlives."""
    program = bench.compiled(mpi, "beside_acp.c", "-lacp")
    for word, line in [("one_leaves", r"rank 1 ended without acp_finalize"),
                       ("one_dies", r"rank \d \(process \d+ on host \S+\) ended")] if program else []:
        got, out, err = bench.run([*launcher(mpi, 3), program, word])
        if got in (0, "after the time limit") or "sum" in out or not re.search(line, err):
            yield f"{word}: status {got}, {out!r}, {err[-500:]!r}"
    bench.program = str(bench.folder / "beside_acp")
    if left := bench.left():
        yield f"processes {left} are left"


def cannot_join(bench, mpi):
    """One line and status 78, never one job for each process."""
    ring = bench.folder / "lost" / "acp_ring"
    ring.parent.mkdir()
    shutil.copy(bench.examples / "acp_ring", ring)
    shutil.copy(bench.library / "libacp.so.1", ring.parent)
    without = {"LD_LIBRARY_PATH": str(ring.parent), "PATH": "/usr/bin:/bin"}
    told = []
    if shutil.which("hiroba", path=without["PATH"]) is None:
        told.append(([*launcher(mpi, 2), str(ring)], without, "join through the command hiroba"))
    ring = str(bench.examples / "acp_ring")
    told.append(([ring], {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}, "srun --mpi=pmix"))
    told.append(([ring], {"PMI_RANK": "0", "PMI_SIZE": "2"}, "speaks neither PMIx nor PMI"))
    told.append(([ring], {"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_FD": "97"}, "PMI_FD=97 is no open"))
    for words, more, line in told:
        got, out, err = bench.run(words, **more)
        # MPICH's launcher kills the other process as soon as one has ended, and says that; or it finds
        # the pipe of its own helper closed first, and ends by an assertion of its own (255), or writes there.
        if words[0] != ring and mpi == "mpich":
            if (got == 9 and "BAD TERMINATION" in out) or (got == 255 and "assert (!closed)" in err) or (
                    got == -signal.SIGPIPE and out == ""):
                got, out = 78, ""
        if got != 78 or out or err.count(line) != 1:
            yield f"{more}: status {got}, {out!r}, {err[-500:]!r}"


def hybrid(bench, mpi):
    """MPI and OpenMP: one rank over all nodes by exec; ranks of two nodes each by run."""
    program = bench.compiled(mpi, "hybrid.c", "-fopenmp")
    if not program:
        return
    said = "rank {} of {}: 2 threads in 2 processes, sum {}"
    for ranks, words in [(1, [*launcher(mpi, 2), bench.hiroba, "exec", "--threads", "1"]),
                         (2, [*launcher(mpi, 2), bench.hiroba, "run", "-n", "2", "--threads", "1"]),
                         (1, [bench.hiroba, "run", "-n", "2", "--threads", "1"])]:
        ended = bench.run([*words, program])
        lines = [said.format(rank, ranks, SUM_OF_HYBRID[ranks]) for rank in range(ranks)]
        yield from faults(ended, lines, " ".join(words))
        if "hiroba" in ended[2]:
            yield f"{words} says {ended[2]!r}"


def two_hosts(bench, mpi):
    """Processes of two hosts, which the launcher mapped in turn."""
    if mpi != "openmpi":
        return
    if why := host_nets.why_missing():
        print(f"mpi_runs.py: two_hosts: {why}")
        return
    with host_nets.Hosts(2) as hosts:
        ended = exec_runs.run_on_two(bench, hosts, str(bench.examples / "acp_ring"))
        yield from faults(ended, ["100 rounds of 4 ranks: VERIFICATION SUCCESSFUL"], "two hosts")


def slurm(bench, _mpi):
    """srun with PMIx and with PMI joins; without either it is refused."""
    ring = str(bench.examples / "acp_ring")
    with exec_runs.slurm_of_this_machine(bench.folder) as configuration:
        given = {"SLURM_CONF": configuration}
        for kind in ("pmix", "pmi2"):
            ended = bench.run(["srun", f"--mpi={kind}", "--overcommit", "-n", "3", ring], **given)
            yield from faults(ended, ["100 rounds of 3 ranks: VERIFICATION SUCCESSFUL"], kind)
        got, out, err = bench.run(["srun", "--overcommit", "-n", "2", ring], **given)
        if got != 78 or out or err.count("Use srun --mpi=pmix") != 1:
            yield f"without PMI: status {got}, {out!r}, {err!r}"


CASES = [joins, beside_mpi, ends, cannot_join, hybrid, two_hosts]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hiroba", type=pathlib.Path, required=True)
    parser.add_argument("--examples", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="one case")
    parser.add_argument("--slurm", action="store_true", help="with slurmd and slurmctld, as root")
    options = parser.parse_args()
    kinds = [mpi for mpi in ("openmpi", "mpich") if shutil.which(f"mpirun.{mpi}")]
    for mpi in {"openmpi", "mpich"} - set(kinds):
        print(f"mpi_runs.py: there is no mpirun.{mpi}: its runs are left out")
    runs = [(case, mpi) for case in CASES for mpi in kinds if options.only in (None, case.__name__)]
    if options.slurm:
        runs = [(slurm, "slurm")]
    failures = 0
    for case, mpi in runs:
        with tempfile.TemporaryDirectory(prefix="hiroba_mpi") as folder:
            told = list(case(Bench(options, pathlib.Path(folder)), mpi))
        print(f"{case.__name__} {mpi}: {'failed' if told else 'passed'}", *told, sep="\n    ")
        failures += bool(told)
    print(f"{len(runs) - failures} passed, {failures} failed")
    if not runs:
        return exec_runs.SKIPPED if options.only is None else 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
