#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every link of the pages leads to a file, and every anchor to a heading of it; and that each
page below docs/ is reached by links from the README.

Usage: check_links.py <root of the tree>
"""

import re
import sys
from pathlib import Path

from report import report

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.MULTILINE)
NAMED = re.compile(r"""<a (?:name|id)=["']([^"']+)["']""")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
SKIPPED = {"build", "node_modules", ".git"}


def anchor_of(heading):
    """As forges make them: lower case, no punctuation, spaces as dashes."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", "")).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def slug(heading, _separator):
    """For mkdocs, so that the site's anchors are the forge's (scripts/build-docs.sh)."""
    return anchor_of(heading)


def anchors_of(text):
    found = set(NAMED.findall(text))
    for heading in HEADING.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
        anchor = anchor_of(heading)
        number = 0
        while anchor in found:
            number += 1
            anchor = f"{anchor_of(heading)}-{number}"
        found.add(anchor)
    return found


def unreached(root):
    """Pages below docs/ to which no links lead from the README."""
    seen, open_pages = set(), [(root / "README.md").resolve()]
    while open_pages:
        page = open_pages.pop()
        if page in seen or page.suffix != ".md" or not page.is_file():
            continue
        seen.add(page)
        targets = (link[1].partition("#")[0] for link in LINK.finditer(CODE.sub("", page.read_text())))
        open_pages += [(page.parent / target).resolve() for target in targets
                       if target and not re.match(r"[a-z]+:", target)]
    return [page for page in sorted((root / "docs").rglob("*.md")) if page.resolve() not in seen]


def faults(root):
    """Every violation as (path, line number, text)."""
    for page in unreached(root):
        yield page.relative_to(root), 1, "no way of links from the README leads here"
    for page in sorted(root.rglob("*.md")):
        path = page.relative_to(root)
        if any(part in SKIPPED or part.startswith("build-") for part in path.parts):
            continue
        text = page.read_text()
        plain = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
        for link in LINK.finditer(plain):
            target, _, anchor = link[1].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            line = plain.count("\n", 0, link.start()) + 1
            goal = (page.parent / target).resolve() if target else page
            if not goal.exists():
                yield path, line, f"there is no {target}"
            elif anchor and goal.suffix == ".md" and anchor not in anchors_of(goal.read_text()):
                yield path, line, f"{target or 'this page'} has no heading #{anchor}"


def main():
    return report(faults(Path(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
