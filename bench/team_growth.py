#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs sim_team_growth and draws what a region and a barrier take over the number of nodes.

Usage: team_growth.py --program build/bin/sim_team_growth [--nodes 1024] [--out docs/figures]
Writes team_growth.csv and team_growth.svg: for each wire a barrier of which nobody has anything to
tell (a line), and one of which every node has (dashes), both axes logarithmic.
"""

import argparse
import csv
import math
import pathlib
import subprocess
import sys

WIDTH, HEIGHT, MARGIN = 680, 440, 60
COLOURS = {"shm": "seagreen", "udp": "firebrick", "infiniband": "steelblue"}


def draw(rows):
    """The SVG of the rows of the table."""
    nodes_last = max(int(row["nodes"]) for row in rows)
    least = min(int(row["barrier_ns"]) for row in rows)
    most = max(int(row["barrier_ns"]) for row in rows)
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))

    def x(nodes):
        return MARGIN + (WIDTH - 2 * MARGIN) * (math.log2(nodes) - 1) / max(math.log2(nodes_last) - 1, 1)

    def y(ns):
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (math.log10(ns) - low) / max(high - low, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{MARGIN} {MARGIN}V{HEIGHT - MARGIN}H{WIDTH - MARGIN}" fill="none" stroke="black"/>',
    ]
    for (wire, notice) in sorted({(row["wire"], row["notice_bytes"]) for row in rows}):
        line = [(int(row["nodes"]), int(row["barrier_ns"])) for row in rows
                if (row["wire"], row["notice_bytes"]) == (wire, notice)]
        points = " ".join(f"{x(n):.1f},{y(ns):.1f}" for n, ns in line)
        dashes = "" if notice == "0" else ' stroke-dasharray="5 4"'
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[wire]}" stroke-width="2"{dashes}/>')
        if notice == "0":
            parts.append(f'<text x="{x(2) + 8:.1f}" y="{y(line[0][1]) - 8:.1f}" fill="{COLOURS[wire]}">{wire}</text>')
    for power in range(1, int(math.log2(nodes_last)) + 1):
        parts.append(f'<text x="{x(2 ** power):.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{2 ** power}</text>')
    for power in range(low, high + 1):
        parts.append(f'<text x="{MARGIN - 8}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">{10 ** power / 1000:g}</text>')
    parts.append(f'<text x="{MARGIN - 40}" y="{MARGIN - 16}">barrier, virtual µs; dashes: every node has written</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">nodes</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--nodes", default="1024")
    parser.add_argument("--out", default="docs/figures", type=pathlib.Path)
    options = parser.parse_args()
    run = subprocess.run([options.program, options.nodes], stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        print(f"{options.program} {options.nodes}: exit status {run.returncode}", file=sys.stderr)
        return run.returncode
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "team_growth.csv").write_text(run.stdout)
    (options.out / "team_growth.svg").write_text(draw(list(csv.DictReader(run.stdout.splitlines()))))
    print(run.stdout, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
