#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Speed-up of NPB EP, CG and BT over threads and nodes, as data and as a plot: figure 4 of the
shared memory's paper (the sequential program is 1).

    speed_up.py --hiroba build/bin/hiroba --programs NPB/bin --sequential NPB-without-openmp/bin \\
                [--classes-of ep=A cg=A bt=W] [--repeat 5] [--out docs/figures]

Writes speed_up.csv and speed_up.svg. Every run must verify with every node taking part.
"""
import argparse
import csv
import statistics
import sys
from pathlib import Path

import npb
import record

# (how it runs, nodes, threads a node); 0 nodes: libgomp alone
SHAPES = (("libgomp", 0, 1), ("libgomp", 0, 2), ("hiroba", 1, 1), ("hiroba", 1, 2),
          ("hiroba", 2, 1), ("hiroba", 2, 2), ("hiroba", 4, 1))
COLOURS = ("#bbbbbb", "#888888", "#9ecae1", "#6baed6", "#3182bd", "#fdae6b", "#e6550d")
BAR, GAP, HEIGHT, MARGIN = 26, 40, 380, 60


def label(shape):
    how, nodes, threads = shape
    return f"{how} {nodes} x {threads}" if nodes else f"{how} {threads}"


def measure(bench, kernel, size, repeat):
    """Medians of what the program says it took: the sequential one first, then each shape's."""
    seconds = [[] for _ in range(1 + len(SHAPES))]
    for _ in range(repeat):
        runs = [bench.alone(kernel, size, 1, bench.options.sequential)]
        for _, nodes, threads in SHAPES:
            runs.append(bench.on_nodes(kernel, size, nodes, threads=threads) if nodes
                        else bench.alone(kernel, size, threads))
        for each, run in zip(seconds, runs):
            if run.failure:
                sys.exit(f"{kernel}.{size}: {run.failure}")
            each.append(run.seconds)
    return [statistics.median(each) for each in seconds]


def bars(at, values, scale):
    """One kernel's bars, the first at x = `at`."""
    for i, value in enumerate(values):
        height = value * scale
        x, y = at + i * BAR, HEIGHT - MARGIN - height
        yield (f'<rect x="{x}" y="{y:.1f}" width="{BAR - 4}" height="{height:.1f}" '
               f'fill="{COLOURS[i]}"/>')
        yield (f'<text x="{x + BAR / 2 - 2}" y="{y - 4:.1f}" text-anchor="middle" '
               f'font-size="10">{value:.2f}</text>')


def draw(rows, circumstances):
    """The SVG of {kernel: speed-ups in the order of SHAPES}, with when and where they were taken below."""
    group = BAR * len(SHAPES) + GAP
    width = MARGIN * 2 + group * len(rows) + 130
    top = max(max(values) for values in rows.values())
    scale = (HEIGHT - 2 * MARGIN) / max(top, 1.0)
    one = HEIGHT - MARGIN - scale
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{MARGIN}" y="{MARGIN / 2}">speed-up; the sequential program is 1</text>',
             f'<path d="M{MARGIN} {one:.1f}H{width - 140}" stroke="black" stroke-dasharray="4"/>',
             f'<path d="M{MARGIN} {HEIGHT - MARGIN}H{width - 140}" stroke="black"/>']
    for i, (kernel, values) in enumerate(rows.items()):
        at = MARGIN + GAP // 2 + i * group
        parts += bars(at, values, scale)
        parts.append(f'<text x="{at + group / 2 - GAP / 2}" y="{HEIGHT - MARGIN + 20}" '
                     f'text-anchor="middle">{kernel}</text>')
    for i, shape in enumerate(SHAPES):
        y = MARGIN + 20 * i
        parts.append(f'<rect x="{width - 130}" y="{y}" width="12" height="12" fill="{COLOURS[i]}"/>'
                     f'<text x="{width - 112}" y="{y + 11}">{label(shape)}</text>')
    parts.append(f'<text x="{MARGIN}" y="{HEIGHT - 10}" font-size="10">{circumstances["date"]}, commit '
                 f'{circumstances["commit"]}: {circumstances["machine"]}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hiroba", type=Path, required=True)
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--sequential", type=Path, required=True)
    parser.add_argument("--classes-of", nargs="+", default=["ep=A", "cg=A", "bt=W"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=int, default=600, help="seconds for one run")
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    return parser.parse_args()


def main():
    options = parse()
    bench = npb.Bench(options)
    table, rows = [], {}
    for kernel, size in (word.split("=") for word in options.classes_of):
        serial, *others = measure(bench, kernel, size, options.repeat)
        rows[f"{kernel.upper()}.{size}"] = [serial / seconds for seconds in others]
        table.append([f"{kernel}.{size}", "sequential", round(serial, 3), 1.0])
        table += [[f"{kernel}.{size}", label(shape), round(seconds, 3), round(serial / seconds, 3)]
                  for shape, seconds in zip(SHAPES, others)]
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "speed_up.csv", "w", encoding="utf-8", newline="") as out:
        for file in (out, sys.stdout):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["program", "run", "seconds", "speed_up"])
            writer.writerows(table)
    (options.out / "speed_up.svg").write_text(draw(rows, record.circumstances(options.hiroba)),
                                               encoding="utf-8")


if __name__ == "__main__":
    main()
