#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every link of a built site leads to a file of it, and every anchor to an element.

Usage: check_site.py SITE
"""

import re
import sys
from pathlib import Path

NAMED = re.compile(r"""\b(?:id|name)=["']([^"']+)["']""")
LINK = re.compile(r"""\b(?:href|src)=["']([^"']+)["']""")


def main():
    site = Path(sys.argv[1]).resolve()
    # Pages of Doxygen are its own affair; the page for what is not there has absolute links.
    texts = {page: page.read_text() for page in site.rglob("*.html")
             if page.relative_to(site).parts[0] not in ("libraries", "404.html")}
    names = {page: set(NAMED.findall(text)) for page, text in texts.items()}
    count = 0
    for page, text in texts.items():
        for link in LINK.findall(text):
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:|//", link) or link == "#":
                continue
            goal = (page.parent / target.partition("?")[0]).resolve() if target else page
            if goal.exists() and (not anchor or goal not in names or anchor in names[goal]):
                continue
            print(f"{page.relative_to(site)}: {link} leads nowhere")
            count += 1
    return 1 if count or not texts else 0


if __name__ == "__main__":
    sys.exit(main())
