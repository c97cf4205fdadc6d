#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the tables of figures in the pages with the files that benchmarks have written, or brings them up to
date (--write). A table stands between `<!-- results: FILE.csv -->` and `<!-- end -->`; of each program it
has the newest row. With `newest` behind the file's name only the figures stand there, and below them when, where
and of which commit they are; names behind a colon choose rows: `<!-- results: FILE.csv newest: ONE; OTHER -->`.

Usage: check_results.py <root of the tree> [--write]
"""

import csv
import re
import sys
from pathlib import Path

from report import report

PAGES = ["README.md", "docs/results/programs.md", "docs/guide/report.md"]
TABLE = re.compile(r"(<!-- results: (\w+\.csv)( newest)?(?:: ([^>]*?))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FACTS = ("date", "commit", "machine")


def table_of(rows, newest, names):
    columns = [each for each in rows[0] if each not in FACTS]
    last = list({row[columns[0]]: row for row in rows}.values())
    if names:
        last = [row for name in names.split("; ") for row in last if row[columns[0]] == name]
    shown = columns if newest else [*columns, "date", "commit"]
    lines = ["| " + " | ".join(shown) + " |", "|" + "---|" * len(shown)]
    lines += ["| " + " | ".join(row[each] for each in shown) + " |" for row in last]
    text = "\n".join(lines) + "\n"
    taken = {(row["date"], row["commit"], row["machine"]) for row in last}
    notes = [f"{date}, commit `{commit}`: {machine}." for date, commit, machine in sorted(taken)]
    return text + "\n" + "\n".join(notes) + "\n"


def renewed(root, text):
    def table(found):
        rows = list(csv.DictReader((root / "docs/results" / found[2]).read_text().splitlines()))
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
