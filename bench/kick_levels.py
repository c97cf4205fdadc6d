#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs sim_kick_levels and draws what a barrier takes over the number of nodes.

Usage: kick_levels.py --program build/bin/sim_kick_levels [--nodes 4096] [--out docs/figures]
Writes kick_levels.csv and kick_levels.svg: one dot for each number of nodes, and the line that
ceil(log8 N) levels of the least time that one level took would give.
"""

import math
import sys

from figure import HEIGHT, MARGIN, WIDTH, axes
from growth import run_and_draw


def draw(table):
    """The SVG of the rows of the table."""
    rows = [(int(row["nodes"]), int(row["levels"]), int(row["barrier_ns"])) for row in table]
    level_ns = min(ns / levels for _, levels, ns in rows)
    top_ns = max(max(ns for _, _, ns in rows), level_ns * rows[-1][1]) * 1.1
    last = math.log2(rows[-1][0])

    def x(nodes):
        return MARGIN + (WIDTH - 2 * MARGIN) * (math.log2(nodes) - 1) / max(last - 1, 1)

    def y(ns):
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * ns / top_ns

    line = " ".join(f"{x(n):.1f},{y(level_ns * levels):.1f}" for n, levels, _ in rows)
    parts = [
        *axes(),
        f'<polyline points="{line}" fill="none" stroke="gray" stroke-dasharray="4"/>',
    ]
    for nodes, _, ns in rows:
        parts.append(f'<circle cx="{x(nodes):.1f}" cy="{y(ns):.1f}" r="4" fill="steelblue"/>')
        parts.append(
            f'<text x="{x(nodes):.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">'
            f"{nodes}</text>"
        )
    for us in range(0, int(top_ns / 1000) + 1, max(1, int(top_ns / 5000))):
        parts.append(f'<text x="{MARGIN - 8}" y="{y(us * 1000) + 4:.1f}" text-anchor="end">{us}</text>')
    parts.append(f'<text x="{MARGIN - 40}" y="{MARGIN - 16}">barrier, virtual us</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">nodes</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(run_and_draw(__doc__, "kick_levels", "4096", draw))
