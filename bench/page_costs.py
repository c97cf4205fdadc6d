#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What pages cost programs on two nodes: system calls a moved page, by HIROBA_STATS, and the memory of each node, by /proc.

    bench/page_costs.py --hiroba build/bin/hiroba --sources DIR [--only REGEX] [--long] [--providers shm udp]
        [--set NAME=VALUE ...] [--csv FILE]

DIR is as for not_tuned_for.py. Calls are those that protect pages, map them or look which were written, of all nodes; moved are the
bytes fetched, in pages of 4 KiB. Memory is proportional (Pss: a page that two processes map counts half in each): the most that each
node had, and all processes of the job together, beside the most of the program with libgomp. Answers are checked.
"""
import argparse
import csv
import re
import sys
import tempfile
import threading
from pathlib import Path

import answers
import not_tuned_for
from public_programs import Figure, Row, adi, npb

PAGE_BYTES = 4096
LOOK_S = .02


def own_data(megabytes, regions):
    return Row("own_data", f"{megabytes} {regions}", (Figure(f"own data, {megabytes} MB, {regions} regions", 0),), right="right")


ROWS = (*(npb("C port of NAS", "npb_c", kernel, "A", 0) for kernel in ("CG", "MG", "FT")),
        npb("C port of NAS", "npb_c", "BT", "A", 0, long=True), adi(64, 30, 0), adi(256, 30, 0),
        own_data(100, 30), own_data(100, 130))  # what 100 regions more take, and what the first touch does
TINY_ROWS = (own_data(1, 5),)


def descendants(pid):
    """The process and all below it."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += descendants(int(child))
    except OSError:
        pass  # it has ended
    return found


def memory_of(pid):
    """Bytes of proportional memory; 0 of a process that has ended."""
    try:
        told = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(told[1]) * 1024 if told else 0


class Memory:
    """While it is entered, looks at a job's processes: the most that each, and that all together had."""

    def __init__(self, pid):
        self.pid, self.each, self.together, self.ended = pid, {}, 0, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.ended.wait(LOOK_S):
            now = {pid: memory_of(pid) for pid in descendants(self.pid)}
            self.together = max(self.together, sum(now.values()))
            for pid, held in now.items():
                self.each[pid] = max(self.each.get(pid, 0), held)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def largest(self, count):
        """Those of the nodes: a launcher has far less."""
        return sorted(self.each.values(), reverse=True)[:count]


def counters(text):
    """{counter: [of each node]} of the table that HIROBA_STATS=1 prints."""
    table = {}
    for name, figures in re.findall(r"^(\w+)((?: +(?:\d+|-))+)$", text, re.MULTILINE):
        table[name] = [0 if word == "-" else int(word) for word in figures.split()[:-1]]
    return table


def calls_a_page(table):
    """System calls, pages moved, and calls a moved page; None where nothing moved."""
    calls, moved = sum(table["page_calls"]), sum(table["bytes_fetched"]) / PAGE_BYTES
    return calls, moved, calls / moved if moved >= 1 else None


def measure(row, runs, folder):
    """A row of the table, in MB and counts."""
    measurement, seen = not_tuned_for.Measurement(runs, row, folder), []

    def watch(pid):
        seen.append(Memory(pid))
        return seen[-1]

    runs.watch = watch
    measurement.check()
    bare, ours = seen
    calls, moved, per_page = calls_a_page(counters((folder / "check_hiroba/stderr").read_text(errors="replace")))
    nodes = ours.largest(2)
    return {"page calls": calls, "pages moved": round(moved), "calls a moved page": "–" if per_page is None else f"{per_page:.3f}",
            "libgomp, MB": round(bare.together / 1e6), "nodes, MB": " + ".join(f"{held / 1e6:.0f}" for held in nodes),
            "job, MB": round(ours.together / 1e6)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", type=Path, required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a run")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="a small program of our own alone, for a test of this command")
    parser.add_argument("--providers", nargs="+", default=["shm"])
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of hiroba")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    options.hiroba, options.sources, options.one_node, options.dear = options.hiroba.resolve(), options.sources.resolve(), False, False
    return options


def main():
    options = parse()
    table, failed = [], 0
    with tempfile.TemporaryDirectory(prefix="page_costs") as folder:
        for row in TINY_ROWS if options.tiny else ROWS:
            name = row.figures[0].name
            if not re.search(options.only, name) or (row.long and not options.long):
                continue
            if why := not_tuned_for.missing_for(row, options.sources):
                print(f"{name} not measured: {why[0]}")
                continue
            for provider in options.providers:
                settings = {**not_tuned_for.settings_of(options), "HIROBA_PROVIDER": provider}
                try:
                    told = {"program": name, "provider": provider, **measure(row, not_tuned_for.Runs(options, settings), Path(folder))}
                except (not_tuned_for.Failed, answers.Wrong) as wrong:
                    failed += 1
                    print(f"{name}, {provider}: {wrong} {getattr(wrong, 'more', '')}", flush=True)
                    continue
                table.append(told)
                print("  ".join(f"{column} {value}" for column, value in told.items()), flush=True)
    if options.csv and table:
        with open(options.csv, "w", newline="") as out:
            writer = csv.DictWriter(out, table[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    if not table:
        return 1 if failed else 78
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
