#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory that a program frees goes back to the machine, on every node.

Runs programs/freed_memory.c, which takes, fills on all nodes and frees a block round after round,
and looks meanwhile at what each node's process holds: its own pages, and the memory files that the
job's processes share. No node may ever hold more than one limit, nor at the end, when all is freed,
more than another; the output must be the bare run's.
Needs root, to look at a mapping's file.

    freed_memory.py --hiroba build/bin/hiroba                  a hundred rounds of 64 MiB, all ways
    freed_memory.py --hiroba build/bin/hiroba --rounds 6       the short form
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import compare
from clean_environment import clean_environment

WAYS = ["malloc", "mmap", "elsewhere", "calloc"]
MIB = 1 << 20


def children(pid):
    try:
        return [int(one) for one in
                pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def anonymous_bytes(pid):
    try:
        found = re.search(r"RssAnon:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0


def memory_files(pid):
    """Inode, bytes, and whether it is private, of each memory file that the process has mapped."""
    files = {}
    try:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, _, _, _, inode, *name = line.split(maxsplit=5)
            if not name or not name[0].startswith("/memfd:hiroba") or inode in files:
                continue
            begin, end = (int(one, 16) for one in place.split("-"))
            facts = os.stat(f"/proc/{pid}/map_files/{begin:x}-{end:x}")
            files[inode] = ("private" in name[0], facts.st_blocks * 512)
    except (FileNotFoundError, ProcessLookupError):  # it has ended, or the mapping has
        pass
    return files


def held_by_a_node(launcher):
    """An upper bound: own pages, private copies, and the largest of the shared files."""
    nodes = children(launcher)
    files = {pid: memory_files(pid) for pid in nodes}
    shared = [size for of_node in files.values() for private, size in of_node.values() if not private]
    return max((anonymous_bytes(pid) + max(shared, default=0) +
                sum(size for private, size in files[pid].values() if private) for pid in nodes),
               default=0)


def run(options, program, way, nodes, engine, folder):
    """What is wrong, or nothing, and what the fullest node held at most, and at the end."""
    arguments = [way, str(options.rounds), str(options.megabytes)]
    environment = clean_environment("OMP_")
    environment.update(OMP_NUM_THREADS=str(nodes), HIROBA_FAULT_ENGINE=engine)
    if options.keep:
        environment["HIROBA_KEEP_FREED"] = options.keep
    bare = subprocess.run([program, *arguments], env=environment, capture_output=True, check=True)
    # Into files: no process reads pipes meanwhile.
    with open(folder / "out", "w+b") as out, open(folder / "err", "w+b") as err:
        job = subprocess.Popen([options.hiroba, "run", "-n", str(nodes), "--threads", "1", "--",
                                program, *arguments, "rest"], env=environment, stdout=out, stderr=err)
        held, end = [], time.monotonic() + options.seconds
        while job.poll() is None and time.monotonic() < end:
            held.append(held_by_a_node(job.pid))
            time.sleep(0.05)
        # The program rests for two seconds, in which a busy machine may look but a few times;
        # the very last look may have met the end.
        most, left = max(held, default=0), min((size for size in held[-5:-1] if size > 0), default=0)
        if job.poll() is None:
            job.kill()
            job.wait()
            return f"did not end within {options.seconds} s", most, left
        out.seek(0)
        err.seek(0)
        stdout, stderr = out.read(), err.read()
    if job.returncode != 0 or stdout != bare.stdout:
        return (f"status {job.returncode}, output {stdout!r}, bare {bare.stdout!r}: "
                f"{stderr[-400:].decode(errors='replace')}"), most, left
    if most > options.limit * MIB:
        return f"a node held {most // MIB} MiB, more than {options.limit}", most, left
    if left > options.left * MIB:
        return f"a node held {left // MIB} MiB at the end, more than {options.left}", most, left
    if most < options.megabytes * MIB:
        return f"a node held {most // MIB} MiB at most: the looks found nothing", most, left
    return "", most, left


def freed_memory(bench):
    """The short form, for switched_off.py."""
    options = parser().parse_args(["--hiroba", str(bench.hiroba), "--rounds", "6"])
    options.seconds = 30
    program = str(compare.build(compare.Case("freed_memory.c"), "pie", bench.folder))
    wrong, _, _ = run(options, program, "malloc", bench.nodes, "auto", bench.folder)
    assert not wrong, wrong


def parser():
    made = argparse.ArgumentParser()
    made.add_argument("--hiroba", required=True)
    made.add_argument("--rounds", type=int, default=100)
    made.add_argument("--megabytes", type=int, default=64)
    made.add_argument("--limit", type=int, default=440,
                      help="MiB a node may hold at any time: what is used, as much kept, and as much on its way back, twice")
    made.add_argument("--left", type=int, default=40, help="MiB a node may hold at the end")
    made.add_argument("--keep", default="", help="HIROBA_KEEP_FREED, to see what it does")
    made.add_argument("--ways", default=",".join(WAYS))
    made.add_argument("--nodes", default="2,4")
    made.add_argument("--engines", default="uffd,mprotect")
    made.add_argument("--seconds", type=int, default=140)
    return made


def main():
    options = parser().parse_args()
    options.hiroba = str(pathlib.Path(options.hiroba).resolve())

    failed = 0
    with tempfile.TemporaryDirectory(prefix="freed") as name:
        folder = pathlib.Path(name)
        program = str(compare.build(compare.Case("freed_memory.c"), "pie", folder))
        for way in options.ways.split(","):
            for nodes in map(int, options.nodes.split(",")):
                for engine in options.engines.split(","):
                    begin = time.monotonic()
                    wrong, most, left = run(options, program, way, nodes, engine, folder)
                    failed += bool(wrong)
                    print(f"{'FAIL' if wrong else 'ok  '} {way}, {nodes} nodes, {engine}: at most "
                          f"{most // MIB} MiB a node, {left // MIB} at the end, {time.monotonic() - begin:.1f} s"
                          f"{': ' + wrong if wrong else ''}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
