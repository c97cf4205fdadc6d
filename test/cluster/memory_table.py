#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes programs of test/cluster/programs/*.rows: one with all rows that are to work, and one for each that is refused.

A row names functions, says what becomes of them on several nodes, and has the code that makes, uses and frees what they hand out.
"""
import re

PARTS = ("include", "data", "make", "use", "end", "says", "way")

DRIVER = """
/// Each row: made by the last thread, used by each in turn, freed by main. An argument: that row alone.
int main(int count, char** arguments) {
    (void)count, (void)arguments;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const struct row* const row = &rows[i];
        printf("%s:", row->name);
#pragma omp parallel
        {
            if (omp_get_thread_num() == omp_get_num_threads() - 1) row->make(0);
            for (int turn = 0; turn < omp_get_num_threads(); ++turn) {
#pragma omp barrier
                if (omp_get_thread_num() == turn) row->use(turn);
            }
        }
        row->end(0);
        printf("\\n");
        fflush(stdout);
    }
    return 0;
}
"""


class Row:
    def __init__(self, functions):
        self.functions = functions.split()
        self.parts = {part: [] for part in PARTS}

    @property
    def name(self):
        return self.functions[0]

    @property
    def says(self):
        return " ".join(self.parts["says"])

    @property
    def way(self):
        return self.parts["way"][0].split()[0]


def rows_of(path):
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("== "):
            rows.append(Row(line[3:]))
        elif line and not line.startswith("#"):
            part, colon, text = line.partition(":")
            if not colon or part not in PARTS or not rows:
                raise ValueError(f"{path}:{number}: neither `== functions` nor one of {', '.join(PARTS)}")
            rows[-1].parts[part].append(text.strip())
    for row in rows:
        if len(row.parts["way"]) != 1 or row.way not in ("shared", "twin", "own", "refused"):
            raise ValueError(f"{path}: {row.name}: its way is shared, twin, own or refused")
        if (row.way == "refused") != bool(row.says):
            raise ValueError(f"{path}: {row.name}: what is refused says a line, and nothing else does")
    return rows


def names_in(data):
    """What declarations at file level name: each gets the row's number behind it."""
    while (flat := re.sub(r"\{[^{}]*\}|\([^()]*\)|\[[^][]*\]", " ; ", data)) != data:
        data = flat
    return set(re.findall(r"(\w+)\s*(?=[=,;])", re.sub(r"=[^,;]*", " ", data)))


def program_of(rows):
    """The text of the program; what one row names stays its own."""
    text = ["#define _GNU_SOURCE 1", "#define _REGEX_RE_COMP 1", "#include <omp.h>", "#include <stdio.h>", "#include <stdlib.h>",
            '#define show(...) (fputs(" ", stdout), printf(__VA_ARGS__))']
    text += [f"#include <{name}>" for name in sorted({n for row in rows for part in row.parts["include"] for n in part.split()})]
    for i, row in enumerate(rows):
        data = "\n".join(row.parts["data"])
        body = {part: "\n    ".join(row.parts[part]) for part in ("make", "use", "end")}
        names = names_in(data)
        text.append("".join(f"#define {name} {name}_{i}\n" for name in sorted(names)) + data)
        for part, code in body.items():
            text.append(f"static void {part}_of_{i}(int turn) {{\n    (void)turn;\n    {code}\n}}")
        text.append("".join(f"#undef {name}\n" for name in sorted(names)))
    text.append("static const struct row { const char* name; void (*make)(int); void (*use)(int); void (*end)(int); } rows[] = {")
    text += [f'    {{"{row.name}", make_of_{i}, use_of_{i}, end_of_{i}}},' for i, row in enumerate(rows)]
    text.append("};")
    return "\n".join(text) + DRIVER
