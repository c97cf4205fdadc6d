#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Starts jobs of many nodes on this machine, one thread each, runs regions, barriers, reductions,
criticals and loops on all of them, and ends. Where nodes are mapped, also a program whose threads
wait for each other's plain writes, which no call tells of (src/omp/runtime_watch.cpp).

    many_nodes.py --hiroba build/bin/hiroba --nodes 12 --providers shm udp
    many_nodes.py --hiroba build/bin/hiroba --nodes 100 128 --providers shm udp     (nightly)

Prints how long each took, start and end included. Every node must have taken part, and nothing may
be left behind: no process, and no file of shared memory.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


def shared_files():
    """Names of hiroba's files in shared memory."""
    return {name for name in os.listdir("/dev/shm") if "hiroba" in name}


def fault_of(hiroba, program, nodes, provider, limit_seconds):
    """What is wrong with one run, or None."""
    before = shared_files()
    try:
        run = subprocess.run([hiroba, "run", "-n", str(nodes), "-t", "1", program],
                             env={**os.environ, "HIROBA_PROVIDER": provider}, capture_output=True,
                             text=True, timeout=limit_seconds)
    except subprocess.TimeoutExpired:  # its nodes die with the launcher
        return f"did not end within {limit_seconds} s"
    wanted = f"{nodes} threads of {nodes} processes: right\n"
    if program.endswith("spin_on_flag"):
        wanted = f"turn {3 * nodes} rounds {3 * nodes * (nodes + 1) // 2}\n"
    if run.returncode != 0 or run.stdout != wanted:
        return f"status {run.returncode}, {run.stdout!r}, {run.stderr[-500:]!r}"
    left = shared_files() - before
    return f"left behind: {sorted(left)}" if left else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--nodes", type=int, nargs="+", default=[12])
    parser.add_argument("--providers", nargs="+", default=["shm", "udp"])
    parser.add_argument("--limit-seconds", type=float, default=300)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ["many_nodes", "spin_on_flag"]:
            program = os.path.join(folder, name)
            subprocess.run(["gcc", "-O1", "-fopenmp", PROGRAMS / f"{name}.c", "-o", program], check=True)
            for provider in options.providers:
                for nodes in options.nodes:
                    # Each turn takes a round of all nodes there, and longer without mapped memory.
                    if name == "spin_on_flag" and (nodes > 16 or provider != "shm"):
                        continue
                    begun = time.monotonic()
                    fault = fault_of(options.hiroba, program, nodes, provider, options.limit_seconds)
                    seconds = time.monotonic() - begun
                    print(f"{name}, {nodes} nodes, {provider}: {fault or 'right'}, {seconds:.2f} s", flush=True)
                    failed += fault is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
