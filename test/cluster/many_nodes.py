#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Starts jobs of many nodes on this machine, one thread each, runs regions, barriers, reductions,
criticals and loops on all of them, and ends. Where nodes are mapped, also a program whose threads
wait for each other's plain writes, which no call tells of (src/omp/runtime_watch.cpp).

    many_nodes.py --hiroba build/bin/hiroba --nodes 12 --providers shm udp
    many_nodes.py --hiroba build/bin/hiroba --nodes 128 --providers shm --full

With --full, also four nodes whose memory nearly fills the address space, or has no room there: right,
or refused with the setting to change. What a node maps of others once lay where global memory goes.

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
    """Names of hiroba's files in shared memory. No job makes any; what a test's own program shares has another name."""
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


def full_space_fault(hiroba, program, heap):
    """What is wrong with four nodes of such heaps, or None; and whether they ran."""
    try:
        run = subprocess.run([hiroba, "run", "-n", "4", "-t", "1", program], capture_output=True, text=True,
                             timeout=100, env={**os.environ, "HIROBA_PROVIDER": "shm", "HIROBA_HEAP": heap})
    except subprocess.TimeoutExpired:
        return "did not end within 100 s", False
    if run.returncode == 0 and run.stdout == "4 threads of 4 processes: right\n":
        return None, True
    if run.returncode == 78 and "lower HIROBA_HEAP" in run.stderr:
        return None, False
    return f"status {run.returncode}, {run.stdout!r}, {run.stderr[-500:]!r}", False


def full_space_faults(hiroba, program):
    """Goes from what fits to what does not."""
    ran, faults = {}, 0
    for gibibytes in range(2400, 3200, 100):
        fault, ran[gibibytes] = full_space_fault(hiroba, program, f"{gibibytes}G")
        if fault:
            print(f"4 nodes, heap {gibibytes}G: {fault}", flush=True)
            faults += 1
    if faults == 0 and len(set(ran.values())) != 2:
        print(f"not from what fits to what does not: {ran}")
        return 1
    print(f"4 nodes with heaps of {', '.join(f'{g}G' for g in ran if ran[g])}: right; the others are refused")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--nodes", type=int, nargs="+", default=[12])
    parser.add_argument("--providers", nargs="+", default=["shm", "udp"])
    parser.add_argument("--limit-seconds", type=float, default=300)
    parser.add_argument("--full", action="store_true", help="also nodes that fill the address space")
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
        if options.full:
            failed += full_space_faults(options.hiroba, os.path.join(folder, "many_nodes"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
