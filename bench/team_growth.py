#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs sim_team_growth and draws how a region and a barrier grow with the nodes.

Usage: team_growth.py --program build/bin/sim_team_growth [--nodes 1024] [--out docs/figures]
Writes team_growth.csv and team_growth.svg, three panels over the number of nodes and the levels of the tree, both axes
logarithmic: for each wire the time of a barrier of which nobody has anything to tell (a line), and of one of which
every node has (dashes); what one node sends at most in a barrier, in mails, beside what all to all would be; the bytes
that its card sends in one.
"""

import math
import sys

from growth import run_and_draw

WIDTH, HEIGHT, MARGIN = 680, 360, 60
COLOURS = {"shm": "seagreen", "udp": "firebrick", "infiniband": "steelblue"}


class Panel:
    """Axes of one quantity over the nodes; `top` is where it begins."""

    def __init__(self, top, title, nodes_last, values, unit=1):
        self.top, self.nodes_last, self.unit = top, nodes_last, unit
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        bottom = top + HEIGHT - MARGIN
        self.parts = [f'<path d="M{MARGIN} {top + MARGIN}V{bottom}H{WIDTH - MARGIN}" fill="none" stroke="black"/>',
                      f'<text x="{MARGIN - 40}" y="{top + MARGIN - 16}">{title}</text>']
        for power in range(1, int(math.log2(nodes_last)) + 1):
            self.text(2 ** power, bottom + 18, str(2 ** power))
        for power in range(self.low, self.high + 1):
            self.parts.append(f'<text x="{MARGIN - 8}" y="{self.y(10 ** power) + 4:.1f}" text-anchor="end">'
                              f'{10 ** power / unit:g}</text>')

    def x(self, nodes):
        return MARGIN + (WIDTH - 2 * MARGIN) * (math.log2(nodes) - 1) / max(math.log2(self.nodes_last) - 1, 1)

    def y(self, value):
        room = HEIGHT - 2 * MARGIN
        return self.top + HEIGHT - MARGIN - room * (math.log10(value) - self.low) / max(self.high - self.low, 1)

    def text(self, nodes, y, text):
        self.parts.append(f'<text x="{self.x(nodes):.1f}" y="{y}" text-anchor="middle">{text}</text>')

    def line(self, points, colour, name="", dashes=False, below=False):
        """`points`: (nodes, value); `name` stands at the first, above the line."""
        shown = " ".join(f"{self.x(nodes):.1f},{self.y(value):.1f}" for nodes, value in points)
        dashed = ' stroke-dasharray="5 4"' if dashes else ""
        self.parts.append(f'<polyline points="{shown}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>')
        if name:
            nodes, value = points[-1] if below else points[0]
            at = f'x="{self.x(nodes) - 4:.1f}" text-anchor="end"' if below else f'x="{self.x(nodes) + 8:.1f}"'
            self.parts.append(f'<text {at} y="{self.y(value) + (20 if below else -8):.1f}" fill="{colour}">{name}</text>')


def points_of(rows, wire, notice, column):
    return [(int(row["nodes"]), int(row[column])) for row in rows
            if (row["wire"], row["notice_bytes"]) == (wire, notice)]


def time_panel(rows, nodes_last):
    panel = Panel(0, "barrier, virtual µs; dashes: every node has written", nodes_last,
                  [int(row["barrier_ns"]) for row in rows], unit=1000)
    for wire, notice in sorted({(row["wire"], row["notice_bytes"]) for row in rows}):
        panel.line(points_of(rows, wire, notice, "barrier_ns"), COLOURS[wire], wire if notice == "0" else "",
                   dashes=notice != "0")
    return panel


def mails_panel(rows, nodes_last):
    """The counts of all wires are equal, for what is sent where does not depend on them."""
    mails = points_of(rows, "shm", "0", "sent_max")
    panel = Panel(HEIGHT, "mails that one node sends in a barrier, at most; numbers: levels of the tree", nodes_last,
                  [1, nodes_last])
    panel.line([(nodes, nodes - 1) for nodes, _ in mails], "grey", "all to all", dashes=True, below=True)
    panel.line(mails, "black")
    for (nodes, count), (_, levels) in zip(mails, points_of(rows, "shm", "0", "levels")):
        panel.text(nodes, f"{panel.y(count) - 8:.1f}", str(levels))
    return panel


def bytes_panel(rows, nodes_last):
    silent, telling = (points_of(rows, "shm", notice, "wire_bytes_max")
                       for notice in sorted({row["notice_bytes"] for row in rows}))
    panel = Panel(2 * HEIGHT, "bytes that one card sends in a barrier, at most; dashes: every node has written",
                  nodes_last, [count for _, count in silent + telling])
    panel.line(silent, "black")
    panel.line(telling, "black", dashes=True)
    return panel


def draw(rows):
    """The SVG of the rows of the table."""
    nodes_last = max(int(row["nodes"]) for row in rows)
    panels = [make(rows, nodes_last) for make in (time_panel, mails_panel, bytes_panel)]
    height = HEIGHT * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *(part for panel in panels for part in panel.parts),
        f'<text x="{WIDTH / 2}" y="{height - 16}" text-anchor="middle">nodes</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(run_and_draw(__doc__, "team_growth", "1024", draw))
