#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures what tests load the machine with, one test after the other, and renews test/loads.txt.

`make check` starts as many tests at once as the processors bear by that table (cmake/tests.cmake), so a test that waits
a good part of its time runs beside others. Run it with nothing else running; what it does not run keeps its row.
Usage: measure-tests.py BUILD [--only REGEX] [--dry]     (--dry prints the rows instead)
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

TABLE = Path(__file__).parent.parent / "test" / "loads.txt"
# Only what waits long enough to matter has a row: a table of hundreds of rows would be old at once.
WAITED_MIN = 1.0
LOAD_MAX = 60
# What lasts long begins early.
LONG_MIN = 10.0


def tests_of(build, only):
    """Name, command, folder, environment of each test that matches."""
    told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                          stdout=subprocess.PIPE).stdout
    for test in json.loads(told)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        if re.search(only, test["name"]) and "command" in test:
            yield (test["name"], test["command"], properties.get("WORKING_DIRECTORY", build),
                   dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", [])))


def measured(command, folder, environment):
    """Seconds of wall and of processor time, those of all processes that were waited for."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=folder, env=os.environ | environment, check=False, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def table():
    """Comment lines, and rows by name."""
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [line for line in lines if line.startswith("#")], {row[0]: row[1:] for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--only", default=".")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    comments, rows = table()
    for name, command, folder, environment in tests_of(options.build, options.only):
        wall, processor = measured(command, folder, environment)
        rows.pop(name, None)
        print(f"{name} {100 * processor / wall:.0f} {wall:.1f}", flush=True)
        load = round(100 * processor / wall)
        if wall >= LONG_MIN or (load <= LOAD_MAX and wall - processor >= WAITED_MIN):
            rows[name] = [str(min(max(load, 1), 100)), f"{wall:.0f}"]
    if not options.dry:
        TABLE.write_text("\n".join(comments + [" ".join([name, *row]) for name, row in sorted(rows.items())]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
