#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks in the built library that what runs while the program's vector registers are live touches
none: the functions of dsm/engine/node_own_atomic.cpp and omp/atomic/slow_path_own.cpp, and whatever
they call. The compiler is told so, but what it is not told of (another file's copy of an inline
function, a library's function) may be linked in.

Usage: check_vectors.py <library>
"""

import re
import subprocess
import sys

ENTRIES = re.compile(r"^(hiroba_atomic_(enter|leave)_own|_ZN\w*4Node\d+try_(enter|leave)_own\w*)$")
VECTOR = re.compile(r"%(xmm|ymm|zmm|mm|st|k)\(?\d|%st\b|\bf(ld|st|ild|ist|add|mul|nop|init)\w*\b.*%st"
                    r"|\b(fx|x)(save|rstor)\w*\b|\bemms\b|\bvzero\w+\b")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
BRANCH = re.compile(r"\t(call|jmp|j\w+)\s+(?:[0-9a-f]+ <([^>+]+)(\+0x[0-9a-f]+)?>|(\*.*))$")


def functions(text):
    """Name -> its lines, of what objdump prints."""
    found, lines = {}, []
    for line in text.splitlines():
        begun = FUNCTION.match(line)
        if begun:
            lines = found.setdefault(begun[1], [])
        elif line.strip():
            lines.append(line)
    return found


def faults(text):
    """(function, line, what is wrong), of each that is reached from ENTRIES."""
    all_functions = functions(text)
    wrong, seen = [], set()
    waiting = [name for name in all_functions if ENTRIES.match(name)]
    if len(waiting) != 4:
        wrong.append(("", "", f"4 functions wanted, {len(waiting)} found: {waiting}"))
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for line in all_functions[name]:
            if VECTOR.search(line):
                wrong.append((name, line.strip(), "a vector register"))
            branch = BRANCH.search(line)
            if not branch or branch[2] == name:
                continue
            if branch[4]:
                # hooks.own, which are entries themselves.
                if branch[1] == "call" and name.startswith("hiroba_atomic_"):
                    continue
                wrong.append((name, line.strip(), "a call that cannot be followed"))
            elif branch[2] in all_functions and "@plt" not in branch[2]:
                waiting.append(branch[2])
            else:
                wrong.append((name, line.strip(), "a function of another library"))
    return wrong


def main():
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", sys.argv[1]], check=True,
                          capture_output=True, text=True).stdout
    wrong = faults(text)
    for name, line, what in wrong:
        print(f"{name}: {what}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
