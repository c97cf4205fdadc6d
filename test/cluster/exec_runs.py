#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of other launchers: `mpirun ... hiroba exec` and `srun --mpi=pmix ... hiroba exec`.

A run passes when its output and status are those of the bare program, every node took part (the
program prints the process of each thread), each on the processor that the launcher gave it, and
nothing is left. Exits with 77 where there is no mpirun.

    exec_runs.py --hiroba build/bin/hiroba                  mpirun, on one host and on two
    exec_runs.py --hiroba build/bin/hiroba --slurm          a Slurm of this machine, on loopback
    exec_runs.py --hiroba build/bin/hiroba --only killed
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from clean_environment import clean_environment  # noqa: E402
import host_nets  # noqa: E402

SKIPPED = 77
LIMIT_SECONDS = 300  # of wall time: a hang, and no busy machine

PROGRAM = r"""
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/// The kernel's number: getpid() is node 0's everywhere.
static int process(void) {
    char text[32] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 ? atoi(text) : -1;
}
int main(int argc, char** argv) {
    static int processes[256], processors[256], sum;
    char line[64];
    while (argc > 1 && fgets(line, sizeof line, stdin)) fputs(line, stdout);
#pragma omp parallel reduction(+ : sum)
    {
        processes[omp_get_thread_num()] = process();
        processors[omp_get_thread_num()] = sched_getcpu();
        sum += omp_get_thread_num() + 1;
        if (argc > 2 && strcmp(argv[2], "forever") == 0) sleep(50);
    }
    for (int i = 0; processes[i] != 0; ++i)
        fprintf(stderr, "thread %d: process %d, processor %d\n", i, processes[i], processors[i]);
    printf("sum %d\n", sum);
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""


class Bench:
    def __init__(self, options, folder):
        self.folder = folder
        self.hiroba = str(options.hiroba.resolve())
        self.program = str(folder / "whereabouts")
        (folder / "whereabouts.c").write_text(PROGRAM)
        subprocess.run(["gcc", "-O2", "-fopenmp", folder / "whereabouts.c", "-o", self.program],
                       check=True)
        self.environment = clean_environment("OMP_", "SLURM_", "PMI")

    def start(self, command, **more):
        return subprocess.Popen(command, env={**self.environment, **more}, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, start_new_session=True)

    def run(self, command, text="", **more):
        process = self.start(command, **more)
        try:
            out, err = process.communicate(text, timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return "after the time limit", out, err
        return process.returncode, out, err

    def exec_words(self, *words):
        return [self.hiroba, "exec", "--threads", "1", *words]

    def left(self):
        deadline = time.monotonic() + 60
        while True:
            found = []
            for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    if self.program.encode() in entry.read_bytes():
                        found.append(entry.parent.name)
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)


def whereabouts(told):
    return [tuple(map(int, match)) for match in
            re.findall(r"thread (\d+): process (\d+), processor (\d+)", told)]


def as_bare(bench, ended, nodes, status=0, text=""):
    """What differs from the bare program with `nodes` threads."""
    got, out, err = ended
    wanted = text + f"sum {nodes * (nodes + 1) // 2}\n"
    if got != status or out != wanted:
        yield f"status {got}, {out!r}; bare {status}, {wanted!r}; {err[-500:]!r}"
    if len({process for _, process, _ in whereabouts(err)}) != nodes:
        yield f"not {nodes} nodes: {err!r}"
    if left := bench.left():
        yield f"processes {left} are left"


def mpirun(*words):
    return ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", *words]


def one_host(bench):
    """Two and four nodes; standard input, arguments and status are the program's."""
    for nodes in (1, 2, 4):
        words = mpirun("-n", str(nodes), "--bind-to", "none")
        ended = bench.run([*words, *bench.exec_words(bench.program)])
        yield from as_bare(bench, ended, nodes)
        ended = bench.run([*words, *bench.exec_words("--", bench.program, "read", "7")], "a\nb\n")
        yield from as_bare(bench, ended, nodes, status=7, text="a\nb\n")


def bound(bench):
    """Nodes run on the processors that mpirun gave the processes they stand for."""
    if len(os.sched_getaffinity(0)) < 2:
        return
    ended = bench.run([*mpirun("-n", "2", "--bind-to", "core"), *bench.exec_words(bench.program)])
    yield from as_bare(bench, ended, 2)
    if len({processor for _, _, processor in whereabouts(ended[2])}) != 2:
        yield f"both on one processor: {ended[2]!r}"
    told = bench.run([*mpirun("-n", "2", "--bind-to", "core"), bench.hiroba, "exec", "--threads",
                      "2", bench.program])
    if "may run on processors" not in told[2] or told[0] != 0:
        yield f"the narrow mask is not told: {told}"


def refused(bench):
    """Wrong words, a missing program, processes that do not know of each other: one line."""
    cases = [(64, "--threads zero: wanted", ["--threads", "zero", bench.program], {}),
             (64, "cannot run /nonexistent", ["/nonexistent"], {}),
             (64, "no program was named", [], {})]
    for status, line, words, more in cases:
        got, _, err = bench.run([*mpirun("-n", "3"), bench.hiroba, "exec", *words], **more)
        if got != status or len(re.findall(rf"^hiroba: .*{line}", err, re.MULTILINE)) != 1:
            yield f"{words}: status {got}, {err!r}"
    for more, line in [({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}, "srun --mpi=pmix"),
                       ({"PMI_SIZE": "4", "PMI_RANK": "0"}, "PMIx")]:
        got, _, err = bench.run([bench.hiroba, "exec", bench.program], **more)
        if got != 78 or line not in err:
            yield f"{more}: status {got}, {err!r}"
    ended = bench.run(bench.exec_words(bench.program))
    yield from as_bare(bench, ended, 1)


def other_build(bench):
    """Processes of two builds in one job are refused by one line that names both."""
    copy = bench.folder / "copy"
    (copy / "bin").mkdir(parents=True)
    changed = bytearray(pathlib.Path(bench.hiroba).read_bytes())
    # The note's header: name of 4 bytes, id of 20, type 3, "GNU".
    at = changed.index(b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0") + 16
    own = changed[at:at + 20].hex()
    changed[at] ^= 0xff
    (copy / "bin/hiroba").write_bytes(changed)
    (copy / "bin/hiroba").chmod(0o755)
    (copy / "lib").symlink_to(pathlib.Path(bench.hiroba).parents[1] / "lib")
    words = ["exec", "--threads", "1", bench.program]
    got, out, err = bench.run([*mpirun("-n", "1"), bench.hiroba, *words, ":", "-n", "1", str(copy / "bin/hiroba"), *words])
    lines = re.findall(r"^hiroba: process 1 on \S+ is hiroba build (\w+), process 0 on \S+ is (\w+)", err, re.MULTILINE)
    if got != 78 or out or lines != [(changed[at:at + 20].hex(), own)]:
        yield f"status {got}, {out!r}, {err[-500:]!r}"
    if left := bench.left():
        yield f"processes {left} are left"


def killed(bench):
    """A node that is killed ends the job; the launcher's end leaves nothing."""
    for victim in ("node", "launcher"):
        process = bench.start([*mpirun("-n", "3", "--bind-to", "none"),
                               *bench.exec_words(bench.program, "read", "forever")])
        process.stdin.close()
        process.stdin = None
        deadline = time.monotonic() + 100
        nodes = []
        while len(nodes) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
            nodes = [int(entry.parent.name) for entry in pathlib.Path("/proc").glob("[0-9]*/maps")
                     if is_node(entry.parent, bench.program)]
        if len(nodes) != 3:
            yield f"{victim}: nodes {nodes}"
        os.kill(max(nodes) if victim == "node" else process.pid, signal.SIGKILL)
        try:
            _, err = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            yield f"{victim}: the job goes on"
            os.killpg(process.pid, signal.SIGKILL)
            _, err = process.communicate()
        if victim == "node" and ("was killed by" not in err or process.returncode != 137):
            yield f"status {process.returncode}, {err!r}"
        if left := bench.left():
            yield f"{victim}: processes {left} are left"


def is_node(folder, program):
    with contextlib.suppress(OSError):
        return os.readlink(folder / "exe") == program and "libhiroba" in (folder / "maps").read_text()
    return False


def run_on_two(bench, hosts, *program):
    """Open MPI's mpirun of four processes over two hosts, in turn."""
    names = {f"host{i}": name for i, name in enumerate(hosts.names)}
    shell = bench.folder / "rsh"
    cases = "".join(f"{host}) net={net};; " for host, net in names.items())
    shell.write_text(f"#!/bin/bash\nhost=$1; shift\ncase $host in {cases}esac\n"
                     "exec ip netns exec $net unshare --uts bash -c \"hostname $host; $*\"\n")
    shell.chmod(0o755)
    words = [*mpirun("--host", "host0:2,host1:2", "--map-by", "node", "-n", "4", "--bind-to",
                     "none", "--mca", "plm_rsh_agent", str(shell), "--mca",
                     "oob_tcp_if_include", "eth0"), *program]
    return bench.run(["ip", "netns", "exec", hosts.names[0], "unshare", "--uts", "bash", "-c",
                      "hostname host0; exec " + " ".join(words)])


def two_hosts(bench):
    """mpirun over two hosts; ranks are mapped in turn, and each host carries a run of ours."""
    if why := host_nets.why_missing():
        print(f"exec_runs.py: two_hosts: {why}")
        return
    with host_nets.Hosts(2) as hosts:
        ended = run_on_two(bench, hosts, bench.hiroba, "exec", "-v", "--threads", "1", bench.program)
        yield from as_bare(bench, ended, 4)
        for host, ranks in [("host0", "ranks 0 to 1"), ("host1", "ranks 2 to 3")]:
            if f"host {host}: {ranks}, network device 10.77.0." not in ended[2]:
                yield f"{host} does not carry {ranks}: {ended[2]!r}"


def hostfile(bench):
    """`hiroba run --hostfile`, and hosts of a batch system, reached by a command."""
    if why := host_nets.why_missing():
        print(f"exec_runs.py: hostfile: {why}")
        return
    with host_nets.Hosts(2) as hosts:
        listed = bench.folder / "hosts"
        listed.write_text(f"# two\n{hosts.names[0]} slots=2\n{hosts.names[1]}\n")
        words = hosts.at_home(bench.hiroba, "run", "--ssh", "ip netns exec", "--threads", "1")
        yield from as_bare(bench, bench.run([*words, "--hostfile", str(listed), bench.program]), 3)
        pbs = bench.run([*words, bench.program], PBS_NODEFILE=str(listed))
        yield from as_bare(bench, pbs, 3)
        slurm = bench.run([*words, bench.program], SLURM_JOB_NODELIST=",".join(hosts.names),
                          SLURM_TASKS_PER_NODE="1(x2)")
        yield from as_bare(bench, slurm, 2)


@contextlib.contextmanager
def slurm_of_this_machine(folder):
    """slurmctld and slurmd for this machine alone, on loopback, without authentication."""
    host = socket.gethostname()
    cores = len(os.sched_getaffinity(0))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    configuration = folder / "slurm.conf"
    configuration.write_text(f"""ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/affinity
MpiDefault=none
SlurmctldPort=16817
SlurmdPort=16818
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:4
""")
    daemons = [subprocess.Popen([name, "-D", "-f", str(configuration)], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL) for name in ("slurmctld", "slurmd")]
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            told = subprocess.run(["sinfo", "-h", "-o", "%t"], text=True, capture_output=True,
                                  env={**os.environ, "SLURM_CONF": str(configuration)}).stdout
            if "idle" in told:
                break
            time.sleep(0.2)
        yield str(configuration)
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(20)


def slurm(bench):
    """srun with PMIx; srun without it is refused; hiroba run inside an allocation."""
    with slurm_of_this_machine(bench.folder) as configuration:
        given = {"SLURM_CONF": configuration}
        for nodes in (1, 2, 4):
            ended = bench.run(["srun", "--mpi=pmix", "--overcommit", "-n", str(nodes),
                               *bench.exec_words(bench.program, "read", "7")], "a\n", **given)
            if "can not load PMIx library" in ended[2]:
                yield "Slurm's plugin looks for libpmix.so: apt-get install libpmix-dev"
                return
            yield from as_bare(bench, ended, nodes, status=7, text="a\n")
        got, _, err = bench.run(["srun", "-n", "2", *bench.exec_words(bench.program)], **given)
        if got != 78 or err.count("Use srun --mpi=pmix") != 1:
            yield f"without PMIx: status {got}, {err!r}"
        ended = bench.run(["salloc", "-n", "2", bench.hiroba, "run", "--threads", "1",
                           bench.program], **given)
        yield from as_bare(bench, ended, 2)


CASES = [one_host, bound, refused, other_build, killed, two_hosts, hostfile]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hiroba", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="one case")
    parser.add_argument("--slurm", action="store_true", help="with slurmd and slurmctld, as root")
    options = parser.parse_args()
    if shutil.which("srun" if options.slurm else "mpirun.openmpi") is None:
        print(f"exec_runs.py: there is no {'srun' if options.slurm else 'mpirun.openmpi'}")
        return SKIPPED
    failures = 0
    cases = [slurm] if options.slurm else CASES
    cases = [case for case in cases if options.only in (None, case.__name__)]
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="hiroba_exec") as folder:
            told = list(case(Bench(options, pathlib.Path(folder))))
        print(f"{case.__name__}: {'failed' if told else 'passed'}", *told, sep="\n    ")
        failures += bool(told)
    print(f"{len(cases) - failures} passed, {failures} failed")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
