#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the tests of the original ACP library's middle layer, untouched, and checks what they print.

    original_tests.py --hiroba build/bin/hiroba --library build/lib                 fetches the original
    original_tests.py --hiroba build/bin/hiroba --library build/lib --original PLACE

PLACE is a checkout of github.com/project-ace/ACP, or what git can clone; only test/ml of it is read, and
the clock of src/bl/udp/acpbl_sync.h. Nothing of it is kept. What the structures should hold is
computed here, by the same steps on lists and dictionaries of Python.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"
SOURCE = "https://github.com/project-ace/ACP"
ALPHABET = "ABCDEFGHIJKLMNOP"
NUMBERS = re.compile(r"^\s+(\d+,\s*)+$")


# --- what should be there after each step ------------------------------------------------------------

def sequence_states(kind):
    """The contents that the test of vector, deque or list prints, in order."""
    states = [[]]
    v = []

    def show(*all_of):
        states.extend(list(one) for one in all_of)

    for number in range(101, 108):
        v = v + [number]
        show(v)
    show(*[v] * (1 if kind == "list" else 2))  # by at, by iterator
    v = [0] * 6 if kind == "vector" else []
    show(v, v + [200], [], [])
    if kind != "list":
        show([])  # reserved
    v = []
    for place, numbers in ((0, range(301, 306)), (2, range(401, 403))):
        for number in numbers:
            v = v[:place] + [number] + v[place:]
            show(v)
    w = []
    show(v, w)
    w = v
    show(v, w)
    v = v[:-1]
    show(v, w)
    v = v[:1] + v[2:]
    show(v, w)
    v, w = w, v
    show(v, w)
    w = v[1:3]
    show(v, w)
    if kind == "vector":
        return states
    if kind == "list":
        w = w[:1] + v[3:5] + w[1:]
        show(v, w)
    v = v[3:]
    show(v)
    for number in range(501, 504):
        v = [number] + v
        show(v)
    for _ in range(4):
        v = v[1:]
        show(v)
    if kind == "deque":
        v = w + v
        show(v, w, v[3:])
    return states


def key_states(kind):
    """The keys, with counts or values, that the test of set, multiset or map prints, in order."""
    def kept(length):
        return {"set": 1, "multiset": 1, "map": chr(ord("a") + length - 1) * 15}[kind]

    full = {ALPHABET[:length]: kept(length) for length in range(1, 17)}
    less = {key: what for key, what in full.items() if key != "ABCDEF"}
    states = [{}, full, full, {}, full, full, less, full]
    if kind == "multiset":
        less = {key: 2 for key in full} | {"ABCDEF": 1}
        states += [less, full]
    states += [less, {}, {}, less, less, {}]
    if kind == "multiset":
        for key, count in (("ABCD", 1), ("ABCDEF", 0), ("ABC", 0)):
            less = {each: count if each == key else its for each, its in less.items()}
            less = {each: its for each, its in less.items() if its}
            states += [less, {}]
    return states


# --- what was printed ----------------------------------------------------------------------------------

def read_sequences(text):
    states, at_header = [], False
    for line in text.splitlines():
        if re.match(r"^  (vector|deque|list)\[", line):
            states.append([])
        elif NUMBERS.match(line):
            numbers = [int(each) for each in re.findall(r"\d+", line)]
            states[-1:] = [numbers] if at_header else [states[-1], numbers]
        elif found := re.match(r"^    elem\[.*value = (\d+)$", line):
            states[-1].append(int(found[1]))
        at_header = re.match(r"^  (vector|deque)\[", line) is not None
    return states


def read_keys(text):
    states = []
    for line in text.splitlines():
        if re.match(r"^    (set|multiset|map)\[\w+\] num_ranks", line):
            states.append({})
        elif found := re.match(r"^ +elem\[.*key = '(\w+)'(?:, value = '(\w+)')?", line):
            count = re.search(r"count = (\w+)", line)
            states[-1][found[1]] = found[2] or (int(count[1], 16) if count else 1)
    return states


def check_sequences(kind):
    def check(out, _):
        yield from compare(read_sequences(out), sequence_states(kind))
    return check


def check_keys(kind):
    def check(out, _):
        yield from compare(read_keys(out), key_states(kind))
        places = re.findall(r"^        it.rank = (\d), .* it.elem = (\w+)$", out, re.MULTILINE)
        if [(rank, int(elem, 16) != 0) for rank, elem in places] != [
                ("0", True), ("1", False), ("0", True), ("0", True)]:
            yield f"found {places}"
        empty = re.findall(r"result = (\d)", out)
        if empty != ["1", "0", "1"]:
            yield f"empty: {empty}"
        told = re.findall(r"retrun (\d+)", out) + re.findall(r"^        count = (\d+)", out, re.MULTILINE)
        if told != {"set": [], "multiset": ["2", "1", "2", "2"], "map": ["15", "0", "15", "15"]}[kind]:
            yield f"retrieved {told}"
    return check


def compare(found, wanted):
    if len(found) != len(wanted):
        yield f"{len(found)} states, not {len(wanted)}"
    for step, (one, other) in enumerate(zip(found, wanted)):
        if one != other:
            yield f"state {step} is {one}, not {other}"
            return


def count_lines(wanted):
    """Each pattern is there so often, in both streams together."""
    def check(out, err):
        for pattern, times in wanted.items():
            found = len(re.findall(pattern, out + err, re.MULTILINE))
            if found != times:
                yield f"{pattern} {found} times, not {times}"
    return check


# (test, ranks, arguments, what looks at the outputs)
TESTS = [
    ("cl/testch01.c", 3, "-r 5", count_lines({"Wrong": 0, r"recv from rank 0[12] : [12]000[0-4]": 10})),
    ("cl/testch02.c", 3, "-r 5", count_lines({"Wrong": 0, r"^rank  [12] received   \|data:  [12]0004": 2})),
    ("cl/testch03.c", 3, "-r 5 -l 100", count_lines({r"^rank [12] \| recv_data: 8 bytes\|4\|": 2})),
    ("cl/testch04.c", 3, "-r 5 -l 9", count_lines({r"^rank 0[12] from rank 00 \|data\|00000000[0-4]": 10})),
    ("cl/testch05.c", 3, "-r 100", count_lines({"Wrong": 0, r"recv_data\[[12]\]: [12]0099": 2})),
    ("cl/testch06.c", 3, "-r 100", count_lines({"Wrong": 0, r"recv_data\[[12]\]: [12]0099": 2})),
    ("dl/test_acpdl_vector.c", 2, "", check_sequences("vector")),
    ("dl/test_acpdl_deque.c", 2, "", check_sequences("deque")),
    ("dl/test_acpdl_list.c", 2, "", check_sequences("list")),
    # With one rank they look at slots and elements themselves.
    ("dl/test_acpdl_set.c", 1, "", check_keys("set")),
    ("dl/test_acpdl_multiset.c", 1, "", check_keys("multiset")),
    ("dl/test_acpdl_map.c", 1, "", check_keys("map")),
    # Speed only: malloc and free here and there, lists, swaps of 8 bytes to 1 MiB.
    ("dl/acpdl_test.c", 3, "", count_lines({r"^ +1024 +[0-9.]+$": 4, r"^ +32 +1024 +[0-9.]+$": 2,
                                            r"^ +\d+ +\d+ +[0-9.]+ +[0-9.]+$": 54})),
    ("dl/list_test.cpp", 3, "-l 5", count_lines({r"\[0\]1\t\[1\]2\t\[2\]3\t\[3\]4\t\[4\]5\t": 1})),
]


def checkout(place, folder):
    """Where the original lies: `place` itself, or what git fetches from there."""
    if (Path(place) / "test/ml").is_dir():
        return Path(place)
    subprocess.run(["git", "clone", "-q", "--depth", "1", place, str(folder / "original")], check=True)
    return folder / "original"


def build(options, original, test, folder):
    """Without optimization: some watch variables that are not volatile."""
    program = folder / test.replace("/", "_")[:-2]
    done = subprocess.run(
        ["g++" if test.endswith("cpp") else "gcc", "-O0", "-w", f"-I{INCLUDE}", f"-I{original / 'src/bl/udp'}",
         str(original / "test/ml" / test), "-o", str(program), f"-L{options.library}", "-lacp",
         f"-Wl,-rpath,{options.library.resolve()}"], capture_output=True, text=True)
    return program, done.stderr if done.returncode else ""


def large_stack():
    """The first one has a buffer of 10 MB on it."""
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def run(options, program, test, provider):
    name, ranks, words, look = test
    done = subprocess.run([str(options.hiroba), "run", "-n", str(ranks), str(program), *words.split()],
                          capture_output=True, text=True, timeout=120, preexec_fn=large_stack,
                          env={**os.environ, "HIROBA_PROVIDER": provider})
    faults = list(look(done.stdout, done.stderr))
    if done.returncode:
        faults.append(f"status {done.returncode}: {done.stderr.strip()[-300:]}")
    if said := re.search(r"^hiroba.*", done.stderr, re.MULTILINE):
        faults.append(said[0])
    print(f"{provider} {name}: {'right' if not faults else '; '.join(faults)}", flush=True)
    return not faults


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--hiroba", type=Path, required=True)
    words.add_argument("--library", type=Path, required=True)
    words.add_argument("--original", default=SOURCE)
    words.add_argument("--provider", nargs="+", default=["shm", "udp"])
    options = words.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        original = checkout(options.original, folder)
        for test in TESTS:
            program, wrong = build(options, original, test[0], folder)
            if wrong:
                print(f"{test[0]} does not compile: {wrong}")
                good = False
                continue
            for provider in options.provider:
                good = run(options, program, test, provider) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
