# SPDX-License-Identifier: BSD-3-Clause
"""Cases of hosts_runs.py: the ports that a job listens on, and where its files are on the hosts."""
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
    before = set(pathlib.Path("/tmp").glob("hiroba-copy-*"))
    seen = bench.folder / "seen"
    # The hosts of this bench share a disk: what the agents are is looked at instead.
    execute = wrapper(bench, "looks", f'case $1 in /*) echo "$1" >>{seen};; esac')
    program = [str(bench.options.examples / "heat"), "64", "20"]
    bare = bench.run(program, OMP_NUM_THREADS="3")
    got = bench.run(bench.command(bench.spread(1, 2), "--copy", "--threads", "1", *program,
                                  execute=execute), HIROBA_STATS="1")
    for done in (bare, got):
        done.stdout = re.sub(rb"(?:error|seconds) \S+", b"TIME", done.stdout)
    yield from differences(bench, bare, got, 3)
    agents = seen.read_text().split() if seen.exists() else []
    if len(agents) != 2 or not all(a.startswith("/tmp/hiroba-copy-") for a in agents):
        yield f"agents were {agents}"
    if left := set(pathlib.Path("/tmp").glob("hiroba-copy-*")) - before:
        yield f"{left} is left"
