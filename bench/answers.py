# SPDX-License-Identifier: BSD-3-Clause
"""Whether a program's answer is right: by its own verification, or as libgomp's, from the files that two runs left in their folders."""
import hashlib
import re


class Wrong(Exception):
    """What is wrong with it."""


def printed(folder):
    return (folder / "stdout").read_text(errors="replace")


def close(ours, theirs, tolerance):
    """Two words are equal, or numbers that differ by no more than `tolerance` of the greater."""
    if ours == theirs:
        return True
    try:
        one, other = float(ours), float(theirs)
    except ValueError:
        return False
    return abs(one - other) <= tolerance * max(abs(one), abs(other))


def check_own(row, folder):
    """What the program itself says of its answer."""
    if row.right:
        found = len(re.findall(row.right, printed(folder), re.MULTILINE))
        if found != 1:
            raise Wrong(f"it prints '{row.right}' {found} times")
    if row.sound:
        try:
            wrong = row.sound(folder)
        except (OSError, ValueError) as error:
            wrong = str(error)
        if wrong:
            raise Wrong(wrong)


def lines_of(path, unlike):
    """The lines of a file, but for those that match `unlike`."""
    with open(path, errors="replace") as file:
        for line in file:
            if not unlike or not re.search(unlike, line):
                yield line


def digest(path, unlike):
    told = hashlib.sha256()
    for line in lines_of(path, unlike):
        told.update(line.encode())
    return told.digest()


def check_files(row, folder, reference):
    for name in row.files:
        ours, theirs = folder / name, reference / name
        if not ours.is_file():
            raise Wrong(f"it writes no {name}")
        if not row.tolerance:
            if digest(ours, row.unlike) != digest(theirs, row.unlike):
                raise Wrong(f"{name} is not as libgomp's")
            continue
        ours, theirs = ([word for line in lines_of(path, row.unlike) for word in line.split()] for path in (ours, theirs))
        if len(ours) != len(theirs):
            raise Wrong(f"{name} has {len(ours)} words, libgomp's {len(theirs)}")
        for one, other in zip(ours, theirs):
            if not close(one, other, row.tolerance):
                raise Wrong(f"{name} has {one}, libgomp's {other}")


def check_numbers(row, folder, reference):
    for expression in row.same:
        ours, theirs = (re.findall(expression, printed(each), re.MULTILINE) for each in (folder, reference))
        if len(ours) != 1 or len(theirs) != 1:
            raise Wrong(f"'{expression}' is printed {len(ours)} times, by libgomp {len(theirs)}")
        if not close(ours[0], theirs[0], row.tolerance):
            raise Wrong(f"'{expression}' is {ours[0]}, with libgomp {theirs[0]}")


def check(row, folder, reference):
    """Raises Wrong unless the answer in `folder` is right."""
    check_own(row, folder)
    check_numbers(row, folder, reference)
    check_files(row, folder, reference)
