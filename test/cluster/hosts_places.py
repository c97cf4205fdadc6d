# SPDX-License-Identifier: BSD-3-Clause
"""Cases of hosts_runs.py: the ports that a job listens on, where its files are on the hosts, and what
`hiroba perf` measures between them."""
import json
import pathlib
import re
import shutil
import subprocess

from hosts_bench import QUIET, differences, environment, expect, wrapper


def ports(bench):
    """A job over hosts listens on nothing but the ports it was given; too few are refused."""
    program = bench.compile("quiet", QUIET)
    job = subprocess.Popen(bench.command(bench.spread(2, 1), "--ports", "20000-20004", "--threads",
                                         "1", str(program)),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=environment(), cwd=bench.folder)
    try:
        if job.stdout.readline() != b"under way\n":
            yield f"it did not start: {job.stderr.read()[-300:]!r}"
            return
        heard = set()
        for name in bench.hosts.names[:2]:
            listed = subprocess.run(["ip", "netns", "exec", name, "ss", "-uanH"],
                                    capture_output=True, text=True).stdout
            # Sockets with a peer only send; a firewall knows their answers.
            heard |= {int(line.split()[3].rsplit(":", 1)[1]) for line in listed.splitlines()
                      if line.split()[0] == "UNCONN"}
        if heard != {20000, 20001, 20002, 20003}:
            yield f"ports {sorted(heard)}"
    finally:
        job.kill()
        job.wait()
    few = bench.run(bench.command(bench.spread(2, 1), "--ports", "20000-20001", "--threads", "1",
                                  str(program)))
    if few.returncode != 78 or b"HIROBA_PORTS=20000-20001" not in few.stderr:
        yield f"too few: status {few.returncode}, {few.stderr[-300:]!r}"
    wrong = bench.run(bench.command(bench.spread(1, 1), "--ports", "5-4", "true"))
    yield from expect(bench, wrong, 64, "HIROBA_PORTS=5-4: give the first and the last port")


def other_paths(bench):
    """Three copies of hiroba at three paths."""
    places = []
    for number, name in enumerate(bench.hosts.names):
        folder = bench.folder / f"copy {number}".replace(" ", "_" * (number + 1))
        for part in ("bin", "lib"):
            shutil.copytree(pathlib.Path(bench.hiroba).parents[1] / part, folder / part,
                            symlinks=True)
        places.append(f"{name}:{folder}/bin/hiroba")
    program = [str(bench.options.examples / "heat"), "64", "20"]
    bare = bench.run(program, OMP_NUM_THREADS="3")
    got = bench.run(bench.command(bench.spread(1, 1, 1), "--hiroba", ",".join(places),
                                  "--threads", "1", *program), HIROBA_STATS="1")
    for done in (bare, got):
        done.stdout = re.sub(rb"(?:error|seconds) \S+", b"TIME", done.stdout)
    yield from differences(bench, bare, got, 3)
    gone = bench.run(bench.command(bench.spread(1, 1), "--hiroba", "/nowhere/hiroba", *program))
    if gone.returncode != 78 or b"/nowhere/hiroba" not in gone.stderr:
        yield f"no hiroba there: status {gone.returncode}, {gone.stderr[-300:]!r}"


def copied(bench):
    """--copy brings hiroba and a program that the hosts lack, and takes them away again."""
    seen = bench.folder / "seen"
    # The hosts of this bench share a disk: what the agents are is looked at instead.
    execute = wrapper(bench, "looks", f"""
        case $1 in /*) echo "$1" $(ls "$(dirname "$1")/../lib") >>{seen};; esac""")
    program = [str(bench.options.examples / "heat"), "64", "20"]
    bare = bench.run(program, OMP_NUM_THREADS="3")
    got = bench.run(bench.command(bench.spread(1, 2), "--copy", "--threads", "1", *program,
                                  execute=execute), HIROBA_STATS="1")
    for done in (bare, got):
        done.stdout = re.sub(rb"(?:error|seconds) \S+", b"TIME", done.stdout)
    yield from differences(bench, bare, got, 3)
    agents = [line.split() for line in seen.read_text().splitlines()] if seen.exists() else []
    if len(agents) != 2 or not all(agent[0].startswith("/tmp/hiroba-copy-") for agent in agents):
        yield f"agents were {agents}"
    # The launcher preloads those of LLVM's names that lie beside the runtime.
    runtime = {"libhiroba.so", "libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"}
    for agent, *libraries in agents:
        if lacking := runtime - set(libraries):
            yield f"{agent} has no {sorted(lacking)}"
    # This job's: the agents' folders, and the launcher's, whose name these begin with.
    folders = {pathlib.Path(agent[0]).parts[2] for agent in agents}
    if left := [path for path in pathlib.Path("/tmp").glob("hiroba-copy-*") if any(folder.startswith(path.name) for folder in folders)]:
        yield f"{left} is left"


def bytes_over_wire(bench):
    """What has come to each host until now, from the wire's other end."""
    listed = subprocess.run(["ip", "-n", bench.hosts.home, "-s", "-j", "link", "show", "type", "veth"],
                            capture_output=True, text=True, check=True).stdout
    return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in json.loads(listed)}


def perf_between_hosts(bench):
    """hiroba perf measures between hosts: answers are right, and test and floor cross the wire."""
    def perf(places, *words):
        return bench.run(bench.hosts.at_home(bench.hiroba, "perf", *words, "--hosts", places, "--ssh",
                                             "ip netns exec", "--milliseconds", "5"))

    for test, nodes, places in (("bandwidth", 2, (1, 1)), ("get_latency", 4, (2, 2)),
                                ("barrier", 3, (1, 1, 1)), ("read_rate", 2, (1, 1)),
                                ("dsm_read_miss", 2, (1, 1)), ("busy_get_latency", 2, (1, 1))):
        before = bytes_over_wire(bench)
        done = perf(bench.spread(*places), test, "--json", "--ports", "21000-21063")
        after = bytes_over_wire(bench)
        if done.returncode != 0:
            yield f"{test}: status {done.returncode}, {done.stderr[-300:]!r}"
            continue
        row = json.loads(done.stdout)
        if row["nodes"] != nodes or row["median_ns"] <= 0 or row["floor_ns"] < 2000:
            yield f"{test}: {row}: memory of one host is not the floor between two"
        for i in range(len(places)):
            if after[f"port{i}"] - before[f"port{i}"] < 10000:
                yield f"{test}: host {i} received {after[f'port{i}'] - before[f'port{i}']} bytes"
    table = perf(bench.spread(1, 1), "put_latency", "--sizes", "8:1M")
    rows = [line.split() for line in table.stdout.decode().splitlines() if "put_latency" in line]
    if table.returncode != 0 or [int(row[1]) for row in rows] != [8 << i for i in range(18)]:
        yield f"--sizes: status {table.returncode}, {table.stdout!r}, {table.stderr[-300:]!r}"
    before = bytes_over_wire(bench)
    constructs = perf(bench.spread(1, 1), "openmp", "--nodes", "2", "--only", "barrier", "--json", "--ports",
                      "21000-21063")
    after = bytes_over_wire(bench)
    if constructs.returncode != 0:
        yield f"openmp: status {constructs.returncode}, {constructs.stderr[-300:]!r}"
    for line in constructs.stdout.splitlines():
        row = json.loads(line)
        if row["sides"][0]["processes"] != 2 or row["sides"][0]["least_us"] < 2:
            yield f"openmp: {row}: not between two hosts"
    if min(after[port] - before[port] for port in ("port0", "port1")) < 10000:
        yield f"openmp: the wire carried {before} to {after}"
    alone = perf(bench.spread(1), "put_latency")
    yield from expect(bench, alone, 64, "needs 2 nodes, and the hosts carry 1", "ended with status 64")
