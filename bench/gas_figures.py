#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws figures 5 and 6 of the MGAS-2 paper for this machine: what get and own take over the size.

Usage: gas_figures.py --hiroba build/bin/hiroba [--provider shm] [--nodes 3] [--out docs/figures]
Writes gas_PROVIDER.csv, gas_get_PROVIDER.svg (bare read, get with and without cached metadata) and
gas_own_PROVIDER.svg (bare read, own).
"""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys

from figure import HEIGHT, MARGIN, WIDTH, axes

GET_SIZES = [8, 64, 512, 4096, 16384, 65536]
OWN_SIZES = [4096, 16384, 65536, 262144, 1 << 20, 4 << 20]
COLORS = {"bare read": "gray", "get, cached": "steelblue", "get, not cached": "firebrick",
          "own": "darkgreen"}


def measure(options, test, size):
    """Nanoseconds (of the test, of its floor)."""
    words = [options.hiroba, "perf", test, "--provider", options.provider, "--nodes",
             str(options.nodes), "--bytes", str(size), "--milliseconds",
             str(options.milliseconds), "--json"]
    run = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=60)
    if run.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit status {run.returncode}")
    line = json.loads(run.stdout)
    return line["median_ns"], line["floor_ns"]


def rows_of(options):
    """(curve, bytes, nanoseconds) of everything."""
    rows = []
    for size in GET_SIZES:
        cached, bare = measure(options, "gas_get", size)
        missed, _ = measure(options, "gas_get_miss", size)
        rows += [("bare read", size, bare), ("get, cached", size, cached),
                 ("get, not cached", size, missed)]
    for size in OWN_SIZES:
        rows.append(("own", size, measure(options, "gas_own", size)[0]))
    return rows


def label(value, units):
    step = 1000 if units[0] == "ns" else 1024
    for unit in units:
        if value < step:
            return f"{value:g} {unit}"
        value /= step
    return f"{value * step:g} {units[-1]}"


def draw(rows, title):
    """An SVG with both axes logarithmic."""
    sizes = sorted({size for _, size, _ in rows})
    low = math.floor(math.log10(min(ns for _, _, ns in rows)))
    high = math.ceil(math.log10(max(ns for _, _, ns in rows)))

    def x(size):
        span = math.log2(sizes[-1]) - math.log2(sizes[0])
        return MARGIN + (WIDTH - 2 * MARGIN) * (math.log2(size) - math.log2(sizes[0])) / span

    def y(ns):
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (math.log10(ns) - low) / (high - low)

    parts = [
        *axes(),
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle">{title}</text>',
    ]
    for power in range(low, high + 1):
        parts.append(f'<text x="{MARGIN - 6}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">'
                     f"{label(10 ** power, ['ns', 'us', 'ms'])}</text>")
    for size in sizes:
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">'
                     f"{label(size, ['B', 'K', 'M'])}</text>")
    curves = list(dict.fromkeys(curve for curve, _, _ in rows))
    for number, curve in enumerate(curves):
        points = [(x(size), y(ns)) for name, size, ns in rows if name == curve]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        color = COLORS[curve]
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{color}"/>'
                  for px, py in points]
        parts.append(f'<text x="{MARGIN + 12}" y="{MARGIN + 16 * number}" fill="{color}">'
                     f"{curve}</text>")
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--provider", default="shm")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--milliseconds", type=int, default=100)
    parser.add_argument("--out", default="docs/figures", type=pathlib.Path)
    options = parser.parse_args()
    rows = rows_of(options)
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / f"gas_{options.provider}.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["curve", "bytes", "nanoseconds"])
        table.writerows(rows)
    where = f"{options.provider}, {options.nodes} nodes"
    get = [row for row in rows if row[0] != "own"]
    own = [row for row in rows if row[0] in ("own", "bare read") and row[1] >= 4096]
    (options.out / f"gas_get_{options.provider}.svg").write_text(draw(get, f"get ({where})"))
    (options.out / f"gas_own_{options.provider}.svg").write_text(draw(own, f"own ({where})"))
    for curve, size, ns in rows:
        print(f"{curve:16} {size:8} {ns:12.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
