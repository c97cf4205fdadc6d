#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the walks of docs/internals/walks.md: each file of a row exists and holds the function of the
row, and each walk says how many steps and files it has.

Usage: check_walks.py <root of the tree> [--write]    (--write renews the counts)
"""

import re
import sys
from pathlib import Path

PAGE = "docs/internals/walks.md"
ROW = re.compile(r"^\| `([\w:]+)` \| (\S+) \|", re.MULTILINE)
COUNT = re.compile(r"<!-- count -->\n.*\n")


def parts(text):
    """Each walk, from its heading on."""
    return re.split(r"^(?=## )", text, flags=re.MULTILINE)


def counted(walk):
    rows = ROW.findall(walk)
    return f"<!-- count -->\n**{len(rows)} steps in {len({file for _, file in rows})} files.**\n"


def faults(root, text):
    """Every violation as (line number, text)."""
    walks = 0
    for start in re.finditer(r"^## .*", text, re.MULTILINE):
        walk = next(part for part in parts(text) if part.startswith(start[0] + "\n"))
        line_of = text.count("\n", 0, start.start()) + 1
        if not ROW.search(walk):
            continue
        walks += 1
        for row in ROW.finditer(walk):
            line = line_of + walk.count("\n", 0, row.start())
            file = root / (row[2] if row[2].startswith("tools/") else f"src/{row[2]}")
            name = row[1].split("::")[-1]
            if not file.is_file():
                yield line, f"there is no {row[2]}"
            elif not re.search(rf"\b{re.escape(row[1])}\s*\(", file.read_text()) and \
                    not ("::" in row[1] and file.suffix == ".hpp" and
                         re.search(rf"\b{name}\s*\(", file.read_text())):
                yield line, f"{row[2]} has no {row[1]}"
        if counted(walk) not in walk:
            yield line_of, "the counts are old: run the check with --write"
    if walks == 0:
        yield 1, "no walk"


def main():
    root = Path(sys.argv[1])
    page = root / PAGE
    text = page.read_text()
    if "--write" in sys.argv[2:]:
        text = "".join(COUNT.sub(counted(part), part) for part in parts(text))
        page.write_text(text)
    found = list(faults(root, text))
    for line, fault in found:
        print(f"{PAGE}:{line}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
