#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the Fortran module has every function and constant of hiroba.h, with the same arguments of as many bytes.

Usage: module_agrees.py <folder of the headers>
"""

import re
import sys
from pathlib import Path

BYTES = {"uint32_t": 4, "int32_t": 4, "hiroba_memory": 4, "int": 4, "float": 4, "uint64_t": 8, "int64_t": 8, "size_t": 8,
         "double": 8, "hiroba_place": 8, "hiroba_handler": 8, "hiroba_procedure": 8, "void": 0}
KINDS = {"c_int": 4, "c_int32_t": 4, "c_float": 4, "c_int64_t": 8, "c_size_t": 8, "c_double": 8, "c_ptr": 8, "c_funptr": 8}
FLOATING = {"float", "double", "c_float", "c_double"}


def c_type(text):
    """How a value of the C type is passed: its bytes, and whether it is a floating number."""
    if "*" in text:
        return 8, False
    name = re.sub(r"\b(const|struct)\b", "", text).strip()
    return BYTES[name], name in FLOATING


def of_header(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    constants = dict(re.findall(r"(HIROBA_\w+) = (\d+)", text))
    functions = {}
    for result, name, arguments in re.findall(r"HIROBA_API\s+([\w\s*]+?)(\w+)\(([^;]*)\);", text):
        pairs = [re.match(r"(.*?)(\w+)$", each.strip(), re.S).groups() for each in arguments.split(",")
                 if arguments != "void"]
        functions[name] = c_type(result), [(argument, *c_type(kind)) for kind, argument in pairs]
    return constants, functions


def of_module(text):
    text = re.sub(r"!.*$", "", text, flags=re.M).replace("&\n", "")
    constants = dict(re.findall(r"parameter :: (HIROBA_\w+) = (\d+)", text))
    functions = {}
    pattern = r"^ *(?:(\w+\(\w+\)) )?(function|subroutine) (\w+)\(([^)]*)\) bind\(c\)\n(.*?)end \2"
    for result, _, name, arguments, body in re.findall(pattern, text, re.S | re.M):
        types = {}
        for kind, mode, names in re.findall(r"\w+\((c_\w+)\), (value|intent\(out\)) :: (.*)", body):
            by_value = mode == "value"
            for each in names.split(","):
                types[each.strip()] = (KINDS[kind] if by_value else 8, by_value and kind in FLOATING)
        kind = re.search(r"\((\w+)\)", result)
        functions[name] = ((KINDS[kind[1]], kind[1] in FLOATING) if kind else (0, False),
                           [(each.strip(), *types[each.strip()]) for each in arguments.split(",") if each.strip()])
    return constants, functions


def main():
    folder = Path(sys.argv[1]) / "hiroba"
    faults = []
    for what, wanted, found in zip(("constant", "function"), of_header((folder / "hiroba.h").read_text()),
                                   of_module((folder / "hiroba.f90").read_text())):
        for name in sorted(wanted.keys() | found.keys()):
            if wanted.get(name) != found.get(name):
                faults.append(f"{what} {name}: {wanted.get(name)} in hiroba.h, {found.get(name)} in hiroba.f90")
        print(f"{len(wanted)} {what}s")
        if len(wanted) < 20:
            faults.append(f"only {len(wanted)} {what}s were found in hiroba.h")
    print("\n".join(faults))
    return bool(faults)


sys.exit(main())
