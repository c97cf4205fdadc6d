#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Repeats the evaluations of two papers on this machine, as data and plots.

layer  low-level communication layer, figures 2 to 7: latency, overhead (t1 - t0) and rate of reads
       over threads and sizes, with and without offloading; and what computing hides
kicks  DIMMnet-1, tables 4 to 9: a store, round trip, barrier, sums, windows, a header not cached

Usage: paper_figures.py --hiroba build/bin/hiroba [--provider udp] [--repeat 32] [layer|kicks ...]
Writes layer_PROVIDER.csv, layer_{latency,overhead,rate}_PROVIDER.svg and kicks_PROVIDER.csv to --out.
Each point is --repeat runs; the interval is Student's, 95 %, of their means. Alone on the machine.
--data FILE draws what another machine has measured: a CSV of `layer`, or any text with its lines, such
as what test/guest/guest.py --bed soft_roce --only figures prints.
"""

import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys

WIDTH, HEIGHT, MARGIN = 680, 420, 64
COLORS = ["steelblue", "firebrick", "darkgreen", "darkorange", "purple", "gray"]
# Two-sided, 95 %, by degrees of freedom; beyond the last the normal distribution's.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 9: 2.26, 15: 2.13, 31: 2.04}
MEASURES = {"latency": "read_latency", "overhead": "read_overhead", "rate": "read_rate"}
KICKS = {
    "kick_store": "table 4, a write", "kick_latency": "table 5, round trip",
    "kick_tree": "table 7, barrier in the tree", "kick_barrier": "table 7, barrier, all kick all",
    "kick_sum_unsigned": "table 8, unsigned", "kick_sum_ull": "table 8, 64-bit",
    "kick_sum_float": "table 8, float", "kick_all_reduce": "table 8, double",
    "window": "table 9, a window of 464 bytes there and back",
    "channel": "section 4.2, an item of a stream", "kick_resolve": "a header that is not cached"}


def perf(options, test, *words):
    """(nanoseconds, the floor's) of one run."""
    command = [options.hiroba, "perf", test, "--provider", options.provider, "--milliseconds",
               str(options.milliseconds), "--json", *map(str, words)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {run.returncode}")
    line = json.loads(run.stdout)
    return line["median_ns"], line["floor_ns"]


def interval(values):
    """(mean, half the width of its 95 % interval)."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, 0.0
    free = len(values) - 1
    factor = next((STUDENT[known] for known in sorted(STUDENT, reverse=True) if known <= free), 1.96)
    return mean, factor * statistics.stdev(values) / math.sqrt(len(values))


def point(options, test, *words):
    """Mean, half interval and mean floor of a point; in turns with nothing else."""
    runs = [perf(options, test, *words) for _ in range(options.repeat)]
    mean, half = interval([run[0] for run in runs])
    return mean, half, statistics.fmean(run[1] for run in runs)


def layer_rows(options):
    """(measure, offload, bytes, threads, ns, half, floor)."""
    for measure, test in MEASURES.items():
        for offload in ("always", "never", "auto"):
            for size in options.sizes:
                for threads in options.threads:
                    yield (measure, offload, size, threads,
                           *point(options, test, "--offload", offload, "--bytes", size, "--threads",
                                  threads))
    for offload in ("always", "never", "auto"):
        for size in options.sizes:
            yield ("overlap", offload, size, 1,
                   *point(options, "overlap", "--offload", offload, "--bytes", size))


def draw(curves, title, unit):
    """An SVG over threads; `curves`: name -> [(threads, value, half)]. The value axis is logarithmic."""
    points = [each for curve in curves.values() for each in curve]
    low = math.floor(math.log10(min(value for _, value, _ in points)))
    high = max(low + 1, math.ceil(math.log10(max(value for _, value, _ in points))))
    threads = sorted({x for x, _, _ in points})
    last = math.log2(threads[-1]) or 1

    def x(count):
        return MARGIN + (WIDTH - 3 * MARGIN) * math.log2(count) / last

    def y(value):
        value = max(value, 10 ** low)
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (math.log10(value) - low) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<path d="M{MARGIN} {MARGIN}V{HEIGHT - MARGIN}H{WIDTH - 2 * MARGIN}" fill="none" '
             'stroke="black"/>',
             f'<text x="{WIDTH / 2}" y="24" text-anchor="middle">{title}</text>',
             f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">threads</text>']
    for power in range(low, high + 1):
        parts.append(f'<text x="{MARGIN - 6}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">'
                     f"{10 ** power:g} {unit}</text>")
    for count in threads:
        parts.append(f'<text x="{x(count):.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">'
                     f"{count}</text>")
    for number, (name, curve) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        line = " ".join(f"{x(count):.1f},{y(value):.1f}" for count, value, _ in curve)
        dash = ' stroke-dasharray="5 3"' if number >= len(COLORS) else ""
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}"{dash}/>')
        for count, value, half in curve:
            parts.append(f'<path d="M{x(count):.1f} {y(value - half):.1f}V{y(value + half):.1f}" '
                         f'stroke="{color}"/><circle cx="{x(count):.1f}" cy="{y(value):.1f}" r="3" '
                         f'fill="{color}"/>')
        parts.append(f'<text x="{WIDTH - 2 * MARGIN + 6}" y="{MARGIN + 16 * number}" '
                     f'fill="{color}">{name}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def rows_in(file):
    """The rows among a text's lines; what else it says is passed over."""
    rows = []
    for line in file.read_text().splitlines():
        words = line.strip().split(",")
        if len(words) != 7 or words[0] not in (*MEASURES, "overlap") or not words[2].isdigit():
            continue
        rows.append((words[0], words[1], int(words[2]), int(words[3]), *map(float, words[4:])))
    if not rows:
        sys.exit(f"{file}: no line of it is a row of layer_PROVIDER.csv")
    return rows


def layer(options):
    rows = rows_in(options.data) if options.data else list(layer_rows(options))
    with open(options.out / f"layer_{options.provider}.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["measure", "offload", "bytes", "threads", "ns", "half_interval_ns",
                        "floor_ns"])
        table.writerows([*row[:4], *(f"{value:.1f}" for value in row[4:])] for row in rows)
    for measure in MEASURES:
        curves = {}
        for what, offload, size, threads, ns, half, _ in rows:
            if what != measure:
                continue
            # A rate is drawn as the paper draws it: millions of reads a second.
            value, width = (1000 / ns, 1000 / ns * half / ns) if measure == "rate" else (ns, half)
            curves.setdefault(f"{offload}, {size} B", []).append((threads, value, width))
        title = f"{measure} of reads ({options.provider}, 2 nodes)"
        unit = "M/s" if measure == "rate" else "ns"
        (options.out / f"layer_{measure}_{options.provider}.svg").write_text(
            draw(curves, title, unit))


def kicks(options):
    with open(options.out / f"kicks_{options.provider}.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["test", "what", "ns", "half_interval_ns", "floor_ns"])
        for test, what in KICKS.items():
            row = [f"{value:.1f}" for value in point(options, test)]
            table.writerow([test, what, *row])
            print(f"{what:44} {row[0]:>10} +- {row[1]} ns, floor {row[2]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hiroba", help="the command that measures")
    parser.add_argument("--data", type=pathlib.Path, help="layer: draw this in place of measuring")
    parser.add_argument("--provider", default="udp")
    parser.add_argument("--repeat", type=int, default=32, help="runs of each point")
    parser.add_argument("--milliseconds", type=int, default=100, help="of each run")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 1024, 65536, 1 << 20])
    parser.add_argument("--out", default="docs/figures", type=pathlib.Path)
    parser.add_argument("what", nargs="*", default=["layer", "kicks"])
    options = parser.parse_args()
    if options.data and options.what != ["layer"]:
        parser.error("--data: only the figures of layer are drawn from data; name layer alone")
    if not options.hiroba and not options.data:
        parser.error("--hiroba: needed to measure; --data draws without")
    options.out.mkdir(parents=True, exist_ok=True)
    parts = {"layer": layer, "kicks": kicks}
    for what in options.what:
        if what not in parts:
            parser.error(f"{what}: must be one of {', '.join(parts)}")
        parts[what](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
