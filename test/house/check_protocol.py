#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares docs/protocol.md with the code, or brings it up to date (--write).

The tables between `<!-- generated: NAME -->` and `<!-- end -->` come from protocol_tables, which
asks the functions the nodes run, and from the declarations of messages and shared words. Numbered
invariants of the page and the places that cite them, `(invariant N)`, must match.
Usage: check_protocol.py <root of the tree> <protocol_tables> [--write]
"""

import re
import subprocess
import sys
from pathlib import Path

SECTION = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
INVARIANT = re.compile(r"^(\d+)\. ", re.MULTILINE)
CITATION = re.compile(r"\(invariant (\d+)\)")
MESSAGE = re.compile(r"^/// (.*)\.\ninline constexpr MessageKind (\w+) =", re.MULTILINE)
MEMBER = re.compile(r"^\s*(?:std::uint64_t|LinesSince) (\w+)(?:\[\w+\])?;\s*///< (.*)$", re.MULTILINE)


def tables_of(program):
    """The sections that protocol_tables prints, by name."""
    text = subprocess.run([program], check=True, capture_output=True, text=True, timeout=20).stdout
    parts = re.split(r"^=== (\w+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def messages(root):
    """The messages that coherence needs, from their declarations."""
    rows = [(name, layer, what[0].lower() + what[1:])
            for layer in ("dsm", "omp")
            for what, name in MESSAGE.findall((root / f"src/{layer}/messages.hpp").read_text())]
    lines = [f"| {name} | {layer} | {what} |" for name, layer, what in rows]
    return "| message | layer | what it is for |\n|---|---|---|\n" + "\n".join(lines) + "\n"


def shared_words(root):
    """The words of a block that peers reach one-sidedly."""
    text = (root / "src/dsm/block/block_table.hpp").read_text()
    body = text[text.index("struct alignas(64) BlockRecord"):]
    rows = MEMBER.findall(body[: body.index("};")])
    lines = [f"| {name} | {what} |" for name, what in rows]
    return "| word | what it says |\n|---|---|\n" + "\n".join(lines) + "\n"


def faults_of_invariants(root, page):
    """Invariants nobody cites, and citations of none."""
    numbered = page[page.index("## Invariants"):]
    following = numbered.find("\n## ", 3)
    known = set(INVARIANT.findall(numbered if following < 0 else numbered[:following]))
    cited = {}
    for path in sorted((root / "src/dsm").rglob("*.[ch]pp")):
        for number in CITATION.findall(path.read_text()):
            cited.setdefault(number, path.relative_to(root))
    for number in sorted(known - set(cited), key=int):
        yield f"docs/protocol.md: nothing in src/dsm cites invariant {number}"
    for number in sorted(set(cited) - known, key=int):
        yield f"{cited[number]}: cites invariant {number}, which docs/protocol.md does not have"


def main():
    root, program = Path(sys.argv[1]), sys.argv[2]
    generated = tables_of(program)
    generated["messages"] = messages(root)
    generated["words"] = shared_words(root)
    path = root / "docs/protocol.md"
    page = path.read_text()
    named = [section[1] for section in SECTION.findall(page)]
    faults = [f"docs/protocol.md: no place for the table {name}"
              for name in generated if name not in named]
    faults += [f"docs/protocol.md: the code has no table {name}"
               for name in named if name not in generated]
    if not faults:
        fresh = SECTION.sub(lambda m: m[1] + generated[m[2]] + m[4], page)
        if "--write" in sys.argv:
            path.write_text(fresh)
        elif fresh != page:
            stale = [old[1] for old, new in zip(SECTION.findall(page), SECTION.findall(fresh))
                     if old != new]
            faults.append(f"docs/protocol.md: stale: {', '.join(stale)}. Run the check with --write")
    faults += faults_of_invariants(root, page)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
