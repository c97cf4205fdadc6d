#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the form of the files: SPDX line, opening, length, names, words that promise later work, comments without
a subject; and the lines and words of the pages.

Usage: check_form.py <root of the tree>
"""

import re
import sys
from pathlib import Path

from report import report

FOLDERS = ["src", "include", "tools", "test", "bench", "examples", "scripts", "cmake"]
SUFFIXES = {".cpp", ".hpp", ".c", ".h", ".S", ".f90", ".py", ".sh", ".cmake", ".txt"}
LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FIELDS_MAX = 25
PAGE_COLUMNS_MAX = 160  # longer lines show no diff that can be read
PAGES_WORDS_MAX = 59_200  # of all pages together, tables of results apart: a new one takes the place of another
RESULTS = re.compile(r"<!-- results: .*?<!-- end -->", re.DOTALL)
WIDE_PAGES = {"guide", "tutorials", "protocol.md"}  # older, and left as they are

# Names that say nothing about what is inside; examples may speak of Fortran's COMMON.
EMPTY_NAMES = {"util", "utils", "utility", "helper", "helpers", "common", "misc", "stuff", "old"}
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|\b[Ff]or now\b")

# A comment names the thread, function or field that does it (docs/style.md).
NO_SUBJECT = re.compile(r"//[/!]?<?\s*(?:.*[.:;]\s)?(?:Whoever|Nobody|Somebody|Everybody|Someone|Everyone|No one)\b"
                        r"|^[^/]*//[/!]?<?\s*(?:whoever|nobody|somebody|everybody|someone|everyone|no one)\b")
# Nor does it begin with a clause or a word that stands for a subject named nowhere.
NO_BEGINNING = re.compile(r"\s*//[/!]?<? ?(?:(?:Who|Whose|Whom|They)\b|Of (?!course))")

FUNCTION_START = re.compile(r"^( {0,4})(?!namespace|struct|class|enum|union|extern|public|private)"
                            r"[\w\[:~<].*\)[^;=]*\{$")


CLASS_START = re.compile(r"^( *)(?:template <.*> *)?(?:class|struct)\b(?: alignas\([^)]*\))?"
                         r" *(\w*)[^;]*\{(?!.*\})")
CLASS_HEAD = re.compile(r"^ *(?:class|struct)\b .*[:,]$")
NO_FIELD = re.compile(r"(?:using|friend|typedef|static|enum|public|template|struct|class)\b|[}~]")
FIELD = re.compile(r"(?:mutable |const )*[\w:]+[\w:\s*&]* [*&]*\w+(?: *, *[*&]*\w+)* *;")


def name_faults(path):
    if path.parts[0] == "examples":
        return
    for part in path.parts:
        words = re.split(r"[_.\-]", part.lower())
        for word in EMPTY_NAMES.intersection(words):
            yield 1, f"the name '{part}' says nothing: '{word}'"


def opening_faults(full, path, lines):
    body = lines[1:] if lines and lines[0].startswith("#!") else lines
    if not body or "SPDX-License-Identifier: BSD-3-Clause" not in body[0]:
        yield 1, "no SPDX-License-Identifier: BSD-3-Clause at the top"
        return
    # A .cpp beside its header, and a test, whose name says what it tests, may leave it out.
    is_source = path.suffix in {".cpp", ".hpp", ".h", ".c", ".S"} and path.parts[0] == "src"
    has_header = path.suffix == ".cpp" and full.with_suffix(".hpp").is_file()
    if is_source and not has_header and not path.stem.endswith("_test"):
        if len(body) < 2 or not body[1].startswith(("//", "/*", "# ")):
            yield 2, "does not open with its role"


def function_faults(path, lines):
    """Functions that are too long, found by the indentation clang-format gives them."""
    if path.suffix not in {".cpp", ".hpp"}:
        return
    start = None
    for number, line in enumerate(lines, 1):
        match = FUNCTION_START.match(line)
        if match and (start is None or len(match[1]) <= start[1]):
            start = (number, len(match[1]))
        elif start and line.startswith(" " * start[1] + "}"):
            length = number - start[0] + 1
            if length > FUNCTION_LINES_MAX:
                yield start[0], f"a function of {length} lines; {FUNCTION_LINES_MAX} at most"
            start = None


def fields_of(statement):
    """How many data members the statement of a class declares."""
    if NO_FIELD.match(statement):
        return 0
    if re.match(r".*\(\*\w+\)\(", statement):  # a pointer to a function
        return 1
    plain = statement
    for inside in (r"\{[^{}]*\}", r"(?<=decltype)\([^()]*\)", r"<[^<>]*>", r"\[[^\]]*\]", r"=[^,;]*"):
        while re.search(inside, plain):
            plain = re.sub(inside, "", plain)
    return plain.count(",") + 1 if FIELD.fullmatch(plain) else 0


def class_faults(path, lines):
    """Classes of too many data members, which stand one level in, as clang-format lays them out."""
    if path.suffix not in {".cpp", ".hpp"}:
        return
    open_classes, statement = [], ""  # [indentation, line, name, fields]
    head = ""  # of a class, whose bases take more than one line
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0].rstrip()
        depth = len(code) - len(code.lstrip())
        if head or (CLASS_HEAD.match(code) and not re.search(r"[{};(]", code)):
            first = first if head else number
            head = f"{head} {code.strip()}" if head else code
            if not re.search(r"[{;]", code):
                continue
            code, head = head, ""
        else:
            first = number
        start = CLASS_START.match(code)
        if start:
            open_classes.append([len(start[1]), first, start[2], 0])
            statement = ""
        elif open_classes and code.startswith(" " * open_classes[-1][0] + "}"):
            _, first, name, count = open_classes.pop()
            statement = ""
            if count > FIELDS_MAX:
                yield first, f"'{name}' has {count} data members; {FIELDS_MAX} at most"
        elif open_classes and code:
            inside = open_classes[-1][0] + 4
            statement = code.strip() if depth == inside else f"{statement} {code.strip()}"
            if statement.endswith(";"):
                open_classes[-1][3] += fields_of(statement)
                statement = ""


def subject_faults(path, lines):
    if path.suffix not in {".cpp", ".hpp", ".c", ".h"}:
        return
    comment_before = False
    for number, line in enumerate(lines, 1):
        found = NO_SUBJECT.search(line)
        goes_on = comment_before and line.lstrip().startswith("//")  # a sentence, in small letters
        if found and not (goes_on and found[0].split()[-1].islower()):
            yield number, f"a comment whose subject is nobody in particular: {line.strip()}"
        if not comment_before and NO_BEGINNING.match(line):
            yield number, f"a comment that begins without its subject: {line.strip()}"
        comment_before = line.lstrip().startswith("//")


# A release may run inside of the program's malloc (docs/style.md).
ALLOCATES_UNSEEN = re.compile(r"\bstd::(?:(?:ranges::)?(?:inplace_merge|stable_sort|stable_partition)|get_temporary_buffer)\b")


def allocation_faults(path, lines):
    if path.parts[0] != "src" or path.suffix not in {".cpp", ".hpp"} or path.stem.endswith("_test"):
        return
    for number, line in enumerate(lines, 1):
        found = ALLOCATES_UNSEEN.search(line.split("//")[0])
        if found:
            yield number, f"{found[0]} allocates, though nothing in its call says so"


NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
TYPE = re.compile(r"^(?:class|struct|enum class|union) (?:alignas\([^)]*\) )?(\w+)(?: final)?(?: *:.*)?(?: \{.*)?$")


def types_of(lines):
    """The types that a header defines in a namespace, as (namespace::name, line)."""
    within = []
    for number, line in enumerate(lines, 1):
        if match := NAMESPACE.match(line):
            within.append(match[1])
        elif line.startswith("}  // namespace") and within:
            within.pop()
        elif (match := TYPE.match(line)) and within and not line.endswith(";"):
            yield "::".join(within + [match[1]]), number


def page_faults(root):
    words = 0
    for full in sorted((root / "docs").rglob("*.md")):
        path = full.relative_to(root)
        words += len(RESULTS.sub("", full.read_text()).split())
        if path.parts[1] in WIDE_PAGES:
            continue
        for number, line in enumerate(full.read_text().splitlines(), 1):
            if len(line) > PAGE_COLUMNS_MAX:
                yield path, number, f"a line of {len(line)} characters; {PAGE_COLUMNS_MAX} at most"
    if words > PAGES_WORDS_MAX:
        yield Path("docs"), 1, f"{words} words in all; {PAGES_WORDS_MAX} at most"


def faults(root):
    """Every violation as (path, line number, text)."""
    yield from page_faults(root)
    defined = {}
    for folder in FOLDERS:
        for full in sorted((root / folder).rglob("*")):
            path = full.relative_to(root)
            if full.suffix not in SUFFIXES or not full.is_file() or "__pycache__" in path.parts:
                continue
            lines = full.read_text().splitlines()
            found = list(name_faults(path))
            found += opening_faults(full, path, lines)
            found += function_faults(path, lines)
            found += class_faults(path, lines)
            found += subject_faults(path, lines)
            found += allocation_faults(path, lines)
            for name, number in types_of(lines) if path.suffix == ".hpp" and path.parts[0] != "examples" else ():
                if defined.get(name, path) != path:
                    found.append((number, f"{name} is also defined in {defined[name]}: one word, one meaning"))
                defined.setdefault(name, path)
            if len(lines) > LINES_MAX:
                found.append((LINES_MAX, f"{len(lines)} lines; {LINES_MAX} at most"))
            if path.parts[:2] != ("test", "house"):
                found += [(number, f"promises later work: {line.strip()}")
                          for number, line in enumerate(lines, 1) if UNFINISHED.search(line)]
            for number, text in found:
                yield path, number, text


def main():
    return report(faults(Path(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
