#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/two-hosts.sh: hosts with a core each and a wire between them, a job on them, and nothing left,
however the command ends. Exits with 77 where namespaces cannot be had.

    two_hosts_runs.py --hiroba build/bin/hiroba --examples build/examples
"""
import argparse
import csv
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import host_nets  # noqa: E402
from clean_environment import clean_environment  # noqa: E402
from hosts_bench import regions  # noqa: E402

SKIPPED = 77
LIMIT_SECONDS = 300  # of wall time: a hang, and no busy machine
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "two-hosts.sh"


def start(*words, **more):
    return subprocess.Popen([SCRIPT, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**clean_environment("OMP_", "PBS_", "SLURM_"), **more})


def left(job):
    return [line for line in host_nets.ip("netns", "list").stdout.splitlines()
            if line.startswith(f"{host_nets.PREFIX}{job.pid}")]


def ended(job, status):
    """Its output; and what is wrong with its end."""
    out, err = job.communicate(timeout=LIMIT_SECONDS)
    wrong = [] if job.returncode == status else [f"status {job.returncode}, wanted {status}: {err[-300:]!r}"]
    return out, err, wrong + ([f"namespaces left: {left(job)}"] if left(job) else [])


def hosts(options):
    """Each host has one core and the packet size asked for, and reaches the other."""
    cores = sorted(os.sched_getaffinity(0))
    look = """for host in $(echo $HOSTS | tr , ' '); do
        $HIROBA_SSH $host sh -c 'taskset -cp $$; cat /sys/class/net/eth0/mtu; cat /proc/net/dev | grep -c :'
        done; exit 3"""
    out, _, wrong = ended(start("-n", "4", "--mtu", "9000", "sh", "-c", look), 3)
    yield from wrong
    wanted = [[str(cores[i % len(cores)]), "9000", "2"] for i in range(4)]
    lines = out.split("\n")[:-1]
    found = [[lines[i].split()[-1], *lines[i + 1:i + 3]] for i in range(0, len(lines) - 2, 3)]
    if found != wanted:
        yield f"core, packets and devices of the hosts: {found}, wanted {wanted}"


def job(options):
    """`hiroba run` without a word of hosts spreads its nodes over them, and each works."""
    program = [str(options.examples / "heat"), "64", "20"]
    out, err, wrong = ended(start(options.hiroba, "run", "-v", "-t", "1", *program, HIROBA_STATS="1"), 0)
    yield from wrong
    if "VERIFICATION SUCCESSFUL" not in out:
        yield f"the program printed {out!r}"
    part = regions(err.encode())
    if len(part) != 2 or min(part) < 1 or len(set(re.findall(r"rank \d, network device (\S+) \(eth0\)", err))) != 2:
        yield f"regions by node: {part}; {err[-500:]!r}"


def joined(options):
    """Two programs are one job over both hosts, and ranks that enter main are not told to be idle."""
    programs = [str(options.examples.parent / "acp" / f"acp_joined_{which}") for which in ("first", "second")]
    words = f"{options.hiroba} run -n 1 --hosts ${{HOSTS%%,*}}:2,${{HOSTS##*,}} {programs[0]} 1 : -n 2 {programs[1]} 2"
    out, err, wrong = ended(start("sh", "-c", words), 0)
    yield from wrong
    if out != "2 ranks of program 2 behind 1 of program 1\n" or err:
        yield f"the programs printed {out!r}, {err!r}"


def signals(options):
    """A signal for the script ends command and hosts; so does the command's own death."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        running = start("sh", "-c", "echo under way; exec sleep 100")
        if running.stdout.readline() != "under way\n" or not left(running):
            yield f"signal {number}: it did not start"
        os.kill(running.pid, number)
        yield from ended(running, 128 + number)[2]
    yield from ended(start("sh", "-c", "kill -9 $$"), 137)[2]
    early = start("sleep", "100")
    while not left(early) and early.poll() is None:
        time.sleep(0.001)
    os.kill(early.pid, signal.SIGTERM)
    yield from ended(early, 128 + signal.SIGTERM)[2]


def remains(options):
    """What a command leaves running on a host is killed with it."""
    text = "$HIROBA_SSH ${HOSTS%%,*} sleep 1000 >/dev/null 2>&1 & echo $!; until ip netns pids ${HOSTS%%,*} | grep -q .; do :; done"
    out, _, wrong = ended(start("sh", "-c", text), 0)
    yield from wrong
    if os.path.exists(f"/proc/{int(out)}") and "Z" not in pathlib.Path(f"/proc/{int(out)}/stat").read_text().split()[2]:
        yield f"process {out.strip()} is left"


def bench(options):
    """bench/between_hosts.py measures a program and writes the row down."""
    script = SCRIPT.parents[1] / "bench" / "between_hosts.py"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "figures.csv"
        done = subprocess.run([sys.executable, "-B", script, "--hiroba", options.hiroba, "--examples", options.examples,
                               "--only", "histogram", "--repeat", "1", "--settings", "spread", "--record", file],
                              capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        rows = list(csv.DictReader(file.open())) if file.exists() else []
    if len(os.sched_getaffinity(0)) < 2:
        if "need two cores" not in done.stderr:
            yield f"with one core: {done.stderr[-300:]!r}"
    elif done.returncode != 0 or len(rows) != 1 or rows[0]["program"] != "histogram, spread" or "a core each" not in rows[0]["machine"]:
        yield f"status {done.returncode}, rows {rows}: {done.stderr[-500:]!r}"


def refusals(options):
    for words, text in ((["-n", "1", "true"], "choose from"), ([], "which command"), (["--mtu", "70000", "true"], "--mtu 70000"),
                        (["--cores", "9999", "true"], "--cores: .9999."), (["--cores", "x", "true"], "--cores: invalid")):
        _, err, wrong = ended(start(*words), 2)
        yield from wrong
        if not re.search(text, err):
            yield f"{words}: said {err!r}"
    yield from ended(start("/nowhere/to/be/found"), 127)[2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--examples", type=pathlib.Path, required=True)
    options = parser.parse_args()
    if why := host_nets.why_missing():
        print(f"skipped: {why}")
        return SKIPPED
    failed = 0
    for case in (hosts, job, joined, signals, remains, bench, refusals):
        for text in case(options):
            print(f"FAILED {case.__name__}: {text}", flush=True)
            failed += 1
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
