#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the tables of figures in the pages with the files that benchmarks have written, or brings them up to
date (--write). A table stands between `<!-- results: FILE.csv -->` and `<!-- end -->`; of each program it
has the newest row. With `newest` behind the file's name only the figures stand there, and below them when, where
and of which commit they are; names behind a colon choose rows: `<!-- results: FILE.csv newest: ONE; OTHER -->`.
With `grouped` there is a row for each beginning of names, with the median and the extremes of the third figure:
`<!-- results: FILE.csv grouped: BEGINNING; OTHER -->`; rows of no group stand together below, all of them without names.

Usage: check_results.py <root of the tree> [--write]
"""

import csv
import math
import re
import statistics
import sys
from pathlib import Path

from report import report

PAGES = ["README.md", "docs/results/programs.md", "docs/guide/report.md"]
TABLE = re.compile(r"(<!-- results: (\w+\.csv)( newest| grouped)?(?:: ([^>]*?))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FACTS = ("date", "commit", "machine")


def table_of(rows, newest, names):
    columns = [each for each in rows[0] if each not in FACTS]
    last = list({row[columns[0]]: row for row in rows}.values())
    if names:
        last = [row for name in re.split(r";\s+", names) for row in last if row[columns[0]] == name]
    shown = columns if newest else [*columns, "date", "commit"]
    lines = ["| " + " | ".join(shown) + " |", "|" + "---|" * len(shown)]
    lines += ["| " + " | ".join(row[each] for each in shown) + " |" for row in last]
    text = "\n".join(lines) + "\n"
    taken = {(row["date"], row["commit"], row["machine"]) for row in last}
    notes = [f"{date}, commit `{commit}`: {machine}." for date, commit, machine in sorted(taken)]
    return text + "\n" + "\n".join(notes) + "\n"


def number_of(text):
    try:
        return float(text)
    except ValueError:
        return math.inf


def shown(text):
    return text if number_of(text) == math.inf else f"{float(text):g}"


def grouped_table_of(rows, names):
    """A row a group: how many there are, the median of the third figure, the least and the greatest with their names. A row without
    a number there, `over 25` or none at all, is greater than all with one."""
    columns = [each for each in rows[0] if each not in FACTS]
    groups = {name: {} for name in [*(re.split(r";\s+", names) if names else []), ""]}
    for name, row in {row[columns[0]]: row for row in rows}.items():  # the newest of each name
        group = next(each for each in groups if name.startswith(each))
        groups[group][name.removeprefix(group).lstrip(":, ") or name] = row[columns[3]]
    lines = [f"| {columns[0]} | rows | {columns[3]}: median | least | greatest |", "|---|---|---|---|---|"]
    for group, figures in groups.items():
        if figures:
            numbers = {name: number_of(text) for name, text in figures.items()}
            least, greatest = min(numbers, key=numbers.get), max(numbers, key=numbers.get)
            lines.append(f"| {group or ('others' if names else 'all')} | {len(figures)} | {statistics.median(numbers.values()):.3g} "
                         f"| {shown(figures[least])} ({least}) | {shown(figures[greatest])} ({greatest}) |")
    return "\n".join(lines) + "\n"


def renewed(root, text):
    def table(found):
        rows = list(csv.DictReader((root / "docs/results" / found[2]).read_text().splitlines()))
        if found[3] == " grouped":
            return found[1] + grouped_table_of(rows, found[4]) + found[6]
        return found[1] + table_of(rows, bool(found[3]), found[4]) + found[6]
    return TABLE.sub(table, text)


def faults(root):
    """Every violation as (path, line number, text)."""
    for name in PAGES:
        text = (root / name).read_text()
        if not TABLE.search(text):
            yield Path(name), 1, "has no table of results"
        if renewed(root, text) != text:
            yield Path(name), 1, "has old figures: run the check with --write"


def main():
    root = Path(sys.argv[1])
    if "--write" in sys.argv[2:]:
        for name in PAGES:
            (root / name).write_text(renewed(root, (root / name).read_text()))
    return report(faults(root))


if __name__ == "__main__":
    sys.exit(main())
