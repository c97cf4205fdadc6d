#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the product asks of the C library can be had with glibc 2.31, where `make tarball` links it for that: each name it
takes with a newer version had an older one too, or is defined by packaging/older_glibc.cpp. What the tarball itself asks
is looked at by scripts/try-tarball.sh.

Usage: older_glibc.py SOURCE FILE...
"""

import re
import subprocess
import sys
from pathlib import Path

OLDEST = (2, 31)
# Functions of the headers before glibc 2.33, and the names that headers since 2.38 give to those of C23.
IN_OLDER_HEADERS = re.compile(r"(?:[fl]?stat|fstatat|mknod(?:at)?)(?:64)?|__isoc23_\w+")
SYMBOL = re.compile(r"\s\(?(GLIBC_([0-9.]+))\)?\s+(\S+)$")


def versions(file, undefined):
    """Each name of the C library that the file takes, or has, with its version."""
    table = subprocess.run(["objdump", "-T", file], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in table.splitlines():
        found = SYMBOL.search(line)
        if found and ("*UND*" in line) == undefined:
            yield found[3], tuple(int(part) for part in found[2].split("."))


def main():
    source, *files = sys.argv[1:]
    text = (Path(source) / "packaging/older_glibc.cpp").read_text()
    filled_in = set(re.findall(r"^HIDDEN \w+ (\w+)", text, re.MULTILINE))
    libraries = subprocess.run(["ldd", files[0]], stdout=subprocess.PIPE, text=True, check=True).stdout
    library = re.search(r"libc\.so\.6 => (\S+)", libraries)[1]
    older = {name for name, version in versions(library, undefined=False) if version <= OLDEST}
    newer = {(name, version, file) for file in files for name, version in versions(file, undefined=True)
             if version > OLDEST and name not in older | filled_in and not IN_OLDER_HEADERS.fullmatch(name)}
    for name, version, file in sorted(newer):
        print(f"{file} takes {name} of glibc {'.'.join(map(str, version))}; packaging/older_glibc.cpp has no other")
    return 1 if newer else 0


if __name__ == "__main__":
    sys.exit(main())
