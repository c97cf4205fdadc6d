#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the guide against the tool: every program of its pages prints the same bare and on two nodes,
every node takes part, and where a program's first line says "fewer X than Y.c" the counter X is at most
a quarter of Y's. Every counter of HIROBA_STATS has a row in statistics.md.

Usage: guide_pages.py --hiroba build/bin/hiroba [--pages docs/guide]
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from clean_environment import clean_environment

PROGRAM = re.compile(r"```c\n(/\* (\w+)\.c(?:: fewer (\w+) than (\w+)\.c)? \*/\n.*?)```", re.S)
RATIO = 4
TRIES = 5
SECONDS = 300  # of wall time: a hang, and no busy machine


def run(command, place, **variables):
    clean = clean_environment("OMP_", "GOMP_")
    done = subprocess.run(command, cwd=place, env={**clean, "GOMP_SPINCOUNT": "1000", **variables}, capture_output=True,
                          text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def counters(hiroba, place, name):
    """What the program printed on two nodes, and each counter of both nodes together."""
    file = place / f"{name}.json"
    said = run([hiroba, "run", "-n", "2", "-t", "1", f"./{name}"], place, HIROBA_STATS=f"json:{file}")
    told = json.loads(file.read_text())["nodes"]
    if len(told) != 2 or not all(node["parallel_regions"] for node in told):
        sys.exit(f"{name}: a node took part in no region")
    nodes = [node["counters"] for node in told]
    return said, {key: sum(node[key] for node in nodes) for key in nodes[0]}


def faults(hiroba, pages, place):
    seen = {}
    for page in sorted(pages.glob("*.md")):
        for text, name, counter, other in PROGRAM.findall(page.read_text()):
            (place / f"{name}.c").write_text(text)
            run(["gcc", "-O2", "-fopenmp", "-Wall", "-Werror", f"{name}.c", "-o", name], place)
            bare = run([f"./{name}"], place, OMP_NUM_THREADS="2")
            said, seen[name] = counters(hiroba, place, name)
            if said != bare:
                yield f"{page.name}: {name} prints {said!r} on two nodes, {bare!r} bare"
            if counter:
                here, there = seen[name][counter], seen[other][counter]
                # One node may have done its part before the other began.
                for _ in range(TRIES):
                    if here * RATIO <= there:
                        break
                    there = counters(hiroba, place, other)[1][counter]
                print(f"{name}: {here} {counter}, {other}: {there}")
                if here * RATIO > there:
                    yield f"{page.name}: {name} has {here} {counter}, {other} {there}"
    if not seen:
        yield "the pages have no program"
        return
    table = (pages / "statistics.md").read_text()
    for counter in next(iter(seen.values())):
        if f"`{counter}`" not in table:
            yield f"statistics.md does not explain {counter}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hiroba", required=True, type=Path)
    parser.add_argument("--pages", type=Path,
                        default=Path(__file__).resolve().parents[2] / "docs" / "guide")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = list(faults(options.hiroba.resolve(), options.pages, Path(place)))
    print("\n".join(found) or "the guide says what happens")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
