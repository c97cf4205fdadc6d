#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps figures with what they were taken on: a row of a file in docs/results for each, with date, commit and
machine. Used by benchmarks (their --record FILE); test/house/check_results.py makes the pages' tables of them.
"""
import csv
import datetime
import json
import platform
import re
import subprocess
from pathlib import Path


def circumstances(hiroba, between=""):
    """Of figures taken now: what a reader needs to believe or repeat them.
    `between`: what nodes were on and how they talked, where not on this host as `hiroba info` says."""
    root = Path(__file__).resolve().parents[1]
    info = json.loads(subprocess.run([hiroba, "info", "--json"], check=True, capture_output=True,
                                     text=True).stdout)
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=root, check=True,
                            capture_output=True, text=True).stdout.strip()
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    kernel = ".".join(platform.release().split(".")[:2])
    provider = next(each["name"] for each in info["providers"] if each.get("chosen"))
    return {"date": datetime.date.today().isoformat(), "commit": commit,
            "machine": f"{info['machine']['cores']} cores of {model[1] if model else platform.machine()}, "
                       f"Linux {kernel}, engine {info['fault_engine']['chosen']}, "
                       f"{between or 'provider ' + provider}, "
                       f"{info['build']['compiler']}"}


def append(file, hiroba, row, between="", note=""):
    """Adds `row` (column -> value) with the circumstances, `note` behind the machine's; a new file gets its columns from it."""
    row = {**row, **circumstances(hiroba, between)}
    row["machine"] += f", {note}" if note else ""
    path = Path(file)
    known = path.is_file()
    columns = list(csv.DictReader(path.open()).fieldnames) if known else list(row)
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        if not known:
            writer.writeheader()
        writer.writerow(row)
