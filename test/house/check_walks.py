#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the walks of docs/internals/walks.md: each file of a row exists and holds the function of the
row, the row says what the function does, a function of a row above calls it (unless the row is marked as reached
otherwise), and each walk says how many steps and files it has.

Usage: check_walks.py <root of the tree> [--write]    (--write renews the counts)
"""

import re
import sys
from pathlib import Path

from report import report

PAGE = "docs/internals/walks.md"
ROW = re.compile(r"^\| (⇒ )?`([\w:]+)` \| (\S+) \|(.*)", re.MULTILINE)
COUNT = re.compile(r"<!-- count -->\n.*\n")


def parts(text):
    """Each walk, from its heading on."""
    return re.split(r"^(?=## )", text, flags=re.MULTILINE)


def counted(walk):
    rows = ROW.findall(walk)
    return f"<!-- count -->\n**{len(rows)} steps in {len({row[2] for row in rows})} files.**\n"


def bodies(text, name):
    """The bodies of the functions of that name that `text` defines, by the layout of .clang-format."""
    found = []
    begins = rf"^([ ]*)(?!\s*(?:return|else|if|//)\b)[^\n;={{}}#/]*\b{re.escape(name)}\("
    for begin in re.finditer(begins, text, re.MULTILINE):
        at, depth = begin.end(), 1
        while at < len(text) and depth > 0:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        brace = re.compile(r"[^;{}]*?\{").match(text, at)
        if not brace:
            continue  # declared, or called
        line_end = text.find("\n", brace.end())
        if text[brace.end():line_end].rstrip().endswith("}"):
            found.append(text[at:line_end])
        elif close := re.compile(rf"^{begin[1]}\}}", re.MULTILINE).search(text, brace.end()):
            found.append(text[at:close.start()])
    return found


def faults(root, text):
    """Every violation as (line number, text)."""
    walks = 0
    for start in re.finditer(r"^## .*", text, re.MULTILINE):
        walk = next(part for part in parts(text) if part.startswith(start[0] + "\n"))
        line_of = text.count("\n", 0, start.start()) + 1
        if not ROW.search(walk):
            continue
        walks += 1
        above = []
        for row in ROW.finditer(walk):
            line = line_of + walk.count("\n", 0, row.start())
            file = root / (row[3] if row[3].startswith("tools/") else f"src/{row[3]}")
            name = row[2].split("::")[-1]
            if not row[4].strip(" |"):
                yield line, f"the row of {row[2]} does not say what it does"
            if not file.is_file():
                yield line, f"there is no {row[3]}"
                continue
            source = file.read_text()
            found = bodies(source, row[2]) or (bodies(source, name) if file.suffix == ".hpp" else [])
            if not found:
                yield line, f"{row[3]} has no {row[2]}"
            is_called = any(re.search(rf"\b{re.escape(name)}\b", body) for body in above)
            if above and not row[1] and not is_called:
                yield line, f"no step above calls {row[2]}"
            above += found
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
    return report((PAGE, line, fault) for line, fault in faults(root, text))


if __name__ == "__main__":
    sys.exit(main())
