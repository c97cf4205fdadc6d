#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Repeats the evaluations of two papers on this machine, as data and plots, within a given time.

layer  low-level communication layer, figures 2 to 7: latency, overhead (t1 - t0) and rate of reads
       over threads and sizes, with and without offloading; and what computing hides
kicks  DIMMnet-1, tables 4 to 9: a store, round trip, barrier, sums, windows, a header not cached
asked  figures that the layers are to have, each with what is asked

Usage: paper_figures.py --hiroba build/bin/hiroba [--providers shm udp] [--minutes 10]
           [layer|kicks|asked ...]
Takes every point once, then every point again, and so on until the time is over, so that what
changes on the machine meanwhile changes all points alike. A point is the mean of its runs, its
interval Student's, 95 %. Writes layer_PROVIDER.csv, layer_{latency,overhead,rate,overlap}_PROVIDER.svg,
kicks_PROVIDER.csv and layer_asked.csv to --out, and prints what is asked beside what was had.
Means something alone on the machine: says how much of it others used.
--data FILE draws what another machine has measured: a CSV of `layer`, or any text with its lines, such
as what test/guest/guest.py --bed soft_roce --only figures prints.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

PANEL, HEIGHT, MARGIN, ASIDE = 230, 330, 56, 90
MODES = {"always": "steelblue", "never": "firebrick", "auto": "darkgreen"}
# Two-sided, 95 %, by degrees of freedom; beyond the last the normal distribution's.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 12: 2.18,
           15: 2.13, 20: 2.09, 31: 2.04}
MEASURES = {"latency": "read_latency", "overhead": "read_overhead", "rate": "read_rate",
            "overlap": "overlap"}
TITLES = {"latency": "how long a read takes, one of each thread under way",
          "overhead": "what the call costs that makes a read (t1 - t0, with two looks at the clock)",
          "rate": "reads, 64 of each thread under way", "overlap": "a read with as much computing, over the longer"}
COLUMNS = ["measure", "offload", "bytes", "threads", "ns", "half_interval_ns", "floor_ns", "runs"]
KICKS = {
    "kick_store": "table 4, a write", "kick_latency": "table 5, round trip",
    "kick_tree": "table 7, barrier in the tree", "kick_barrier": "table 7, barrier, all kick all",
    "kick_sum_unsigned": "table 8, unsigned", "kick_sum_ull": "table 8, 64-bit",
    "kick_sum_float": "table 8, float", "kick_all_reduce": "table 8, double",
    "window": "a window of 464 bytes there and back", "windows": "table 9, BOTF, one way, a window",
    "windows_both": "table 9, BOTF, both ways, a window",
    "channel": "section 4.2, an item of a stream", "kick_resolve": "a header that is not cached"}
# Name: provider, test and its words, what is asked: at most so many ns ("ns"), times the floor
# ("floor"), either of both ("or": times the floor, ns).
ASKED = {
    "shm get hit, 8 bytes": ("shm", ["gas_get"], "or", (3, 5)),
    "64 start_get and wait, each": ("shm", ["gas_start_get"], "ns", 12),
    "acp_copy, 8 bytes, registered memory": ("shm", ["acp_copy"], "ns", 30),
    "acp_add8, registered memory": ("shm", ["acp_add8"], "ns", 35),
    "acp_sync": ("shm", ["acp_sync"], "floor", 1.5),
    "am round trip": ("shm", ["am_latency"], "floor", 1.3),
    "enqueue": ("shm", ["enqueue"], "floor", 1.6),
    "acp_sync, 4 nodes": ("udp", ["acp_sync", "--nodes", "4"], "floor", 1.5),
    "kick_tree, 4 nodes": ("udp", ["kick_tree", "--nodes", "4"], "floor", 1.3),
    "small writes, each": ("udp", ["message_rate"], "ns", 60)}


class Point:
    """What is measured again and again: one `hiroba perf`."""

    def __init__(self, part, provider, words, key):
        self.part, self.provider, self.words, self.key = part, provider, words, key
        self.had, self.floors, self.failed = [], [], 0

    def run(self, options, deadline):
        """One run; one that is not over long after the deadline is given up."""
        command = [options.hiroba, "perf", self.words[0], "--provider", self.provider,
                   "--milliseconds", str(options.milliseconds), "--json", *map(str, self.words[1:])]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=max(20, deadline - time.monotonic()))
            line = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            self.failed += 1
            return
        self.had.append(line["median_ns"])
        self.floors.append(line["floor_ns"])

    def mean(self):
        return statistics.fmean(self.had)

    def floor(self):
        return statistics.fmean(self.floors)

    def half_interval(self):
        free = len(self.had) - 1
        if free < 1:
            return 0.0
        factor = next(STUDENT[known] for known in sorted(STUDENT, reverse=True) if known <= free)
        return (factor if free <= 31 else 1.96) * statistics.stdev(self.had) / math.sqrt(free + 1)


def points_of(options):
    points = []
    for provider in options.providers:
        for measure, test in MEASURES.items() if "layer" in options.what else ():
            for offload in MODES:
                for size in options.sizes:
                    for threads in options.threads if measure != "overlap" else [1]:
                        words = [test, "--offload", offload, "--bytes", size]
                        if measure != "overlap":
                            words += ["--threads", threads]
                        points.append(Point("layer", provider, words, (measure, offload, size, threads)))
        for test in KICKS if "kicks" in options.what else ():
            points.append(Point("kicks", provider, [test], test))
    for name, (provider, words, *_) in ASKED.items() if "asked" in options.what else ():
        if provider in options.providers:
            points.append(Point("asked", provider, words, name))
    return points


def busy_seconds():
    """(of the whole machine, of this command's children)."""
    with open("/proc/stat") as file:
        words = file.readline().split()
    user, nice, system = (int(word) / os.sysconf("SC_CLK_TCK") for word in words[1:4])
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return user + nice + system, children.ru_utime + children.ru_stime


def take(points, options):
    """Runs all of them in turns until the time is over; says what others used of the machine."""
    begun, (machine, ours) = time.monotonic(), busy_seconds()
    deadline = begun + 60 * options.minutes
    rounds = 0
    while time.monotonic() < deadline and rounds < options.repeat:
        for point in points:
            if time.monotonic() >= deadline:
                break
            point.run(options, deadline)
        else:
            rounds += 1
    spent = time.monotonic() - begun
    machine_now, ours_now = busy_seconds()
    others = max(0.0, (machine_now - machine) - (ours_now - ours)) / spent / os.cpu_count()
    print(f"{len(points)} points, {rounds} whole rounds, {spent:.0f} s; others used {others:.0%} of "
          f"the machine, {sum(point.failed for point in points)} runs failed")
    missing = [point for point in points if not point.had]
    if missing:
        sys.exit(f"no run of {' '.join(map(str, missing[0].words))} over {missing[0].provider}, and of "
                 f"{len(missing) - 1} others, succeeded in time. Give more --minutes")
    return others


def write(path, columns, rows):
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows(rows)


# --- plots ---------------------------------------------------------------------------------------


class Axes:
    """A panel: x by its base-2 logarithm, y by its decimal one, both with the values that occur."""

    def __init__(self, left, xs, low, high):
        self.left, self.xs, self.low, self.high = left, xs, low, high

    def x(self, value):
        first, last = math.log2(self.xs[0]), math.log2(self.xs[-1])
        return self.left + (PANEL - 40) * (math.log2(value) - first) / ((last - first) or 1)

    def y(self, value):
        share = (math.log10(max(value, 10 ** self.low)) - self.low) / (self.high - self.low)
        share = min(share, 1.05)  # an interval may reach beyond
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share

    def frame(self, title, names):
        bottom = HEIGHT - MARGIN
        parts = [f'<path d="M{self.left} {MARGIN}V{bottom}H{self.left + PANEL - 40}" fill="none" '
                 'stroke="black"/>',
                 f'<text x="{self.left + (PANEL - 40) / 2:.0f}" y="{MARGIN - 8}" '
                 f'text-anchor="middle">{title}</text>']
        for value in self.xs:
            parts.append(f'<text x="{self.x(value):.1f}" y="{bottom + 16}" text-anchor="middle">'
                         f"{names(value)}</text>")
        return parts

    def curve(self, color, points, dashed=False):
        line = " ".join(f"{self.x(at):.1f},{self.y(value):.1f}" for at, value, _ in points)
        parts = [f'<polyline points="{line}" fill="none" stroke="{color}"'
                 f'{" stroke-dasharray=" + chr(34) + "4 3" + chr(34) if dashed else ""}/>']
        for at, value, half in points if not dashed else ():
            parts.append(f'<path d="M{self.x(at):.1f} {self.y(value - half):.1f}V'
                         f'{self.y(value + half):.1f}" stroke="{color}"/><circle cx="{self.x(at):.1f}" '
                         f'cy="{self.y(value):.1f}" r="3" fill="{color}"/>')
        return parts


def size_name(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 else f"{size} B"


def draw(panels, names, unit, title, note):
    """An SVG; `panels`: title -> {curve: [(x, value, half)]}; a curve that is no mode is a floor."""
    every = [point for curves in panels.values() for curve in curves.values() for point in curve]
    low = math.floor(math.log10(min(value for _, value, _ in every)))
    high = max(low + 1, math.ceil(math.log10(max(value for _, value, _ in every))))
    xs = sorted({at for at, _, _ in every})
    width = max(640, MARGIN + 24 + PANEL * len(panels) + ASIDE)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{width / 2:.0f}" y="20" text-anchor="middle" font-size="14">{title}</text>',
             f'<text x="{width / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle" fill="gray">{note}</text>']
    axes = None
    for number, (name, curves) in enumerate(panels.items()):
        axes = Axes(MARGIN + 24 + number * PANEL, xs, low, high)
        parts += axes.frame(name, names)
        for curve, points in curves.items():
            parts += axes.curve(MODES.get(curve, "gray"), points, curve not in MODES)
    for power in range(low, high + 1):
        parts.append(f'<text x="{MARGIN + 18}" y="{axes.y(10 ** power) + 4:.1f}" text-anchor="end">'
                     f"{10 ** power:g} {unit}</text>")
    legend = dict.fromkeys(curve for curves in panels.values() for curve in curves)
    for number, curve in enumerate(legend):
        parts.append(f'<text x="{width - ASIDE}" y="{MARGIN + 16 * number}" '
                     f'fill="{MODES.get(curve, "gray")}">{curve}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def panels_of(measure, rows):
    """What draw() wants of the rows of one measure: a panel for each size, but for overlap."""
    panels = {}
    for what, offload, size, threads, ns, half, floor, _ in rows:
        if what != measure:
            continue
        if measure == "overlap":
            panels.setdefault("", {}).setdefault(offload, []).append((size, ns / floor, half / floor))
            continue
        panel = panels.setdefault(size_name(size), {})
        if measure == "rate":  # as the paper draws it: millions a second
            panel.setdefault(offload, []).append((threads, 1000 / ns, 1000 / ns * half / ns))
        else:
            panel.setdefault(offload, []).append((threads, ns, half))
            if offload == "never":
                panel.setdefault("floor", []).append((threads, floor, 0))
    return panels


# --- what is made of it --------------------------------------------------------------------------


def rows_in(file):
    """The rows among a text's lines; what else it says is passed over."""
    rows = []
    for line in file.read_text().splitlines():
        words = line.strip().split(",")
        if len(words) == len(COLUMNS) and words[0] in MEASURES and words[2].isdigit():
            rows.append((words[0], words[1], int(words[2]), int(words[3]), *map(float, words[4:])))
    if not rows:
        sys.exit(f"{file}: no line of it is a row of layer_PROVIDER.csv")
    return rows


def tell_offloading(provider, rows):
    """The issue's three lines: what a request costs, what a read takes longer, what threads bring."""
    at = {row[:4]: (row[4], row[6]) for row in rows}
    size = min(row[2] for row in rows)
    one = [at[("rate", offload, size, 1)][0] for offload in MODES if ("rate", offload, size, 1) in at]
    print(f"\n{provider}, {size} bytes {'threads':>9} {'overhead ns':>12} {'- clock':>8} "
          f"{'latency/never':>14} {'rate/best of one':>17}")
    for threads in sorted({row[3] for row in rows}):
        overhead, clock = at[("overhead", "always", size, threads)]
        latency = at[("latency", "always", size, threads)][0] / at[("latency", "never", size, threads)][0]
        rate = min(one) / min(at[("rate", offload, size, threads)][0] for offload in MODES
                              if ("rate", offload, size, threads) in at)
        print(f"{'':{len(provider) + 8}} {threads:9} {overhead:12.0f} {overhead - clock:8.0f} "
              f"{latency:14.2f} {rate:17.2f}")
    print("  asked: overhead 150 ns or less (udp), latency 1.19 or less, rate .9 or more")


def layer(options, provider, rows, others):
    write(options.out / f"layer_{provider}.csv", COLUMNS,
          [(*row[:4], *(f"{value:.1f}" for value in row[4:7]), f"{row[7]:.0f}") for row in rows])
    fewest = min(row[7] for row in rows)
    note = f"{provider}, 2 nodes; mean of {fewest:.0f} runs or more, 95 % intervals"
    if others is not None:
        note += f"; others used {others:.0%} of the machine"
    for measure in MEASURES:
        panels = panels_of(measure, rows)
        if not panels:
            continue
        by_size = measure == "overlap"
        unit = {"rate": "M/s", "overlap": "×"}.get(measure, "ns")
        (options.out / f"layer_{measure}_{provider}.svg").write_text(
            draw(panels, size_name if by_size else str, unit,
                 f"{TITLES[measure]}, over {'bytes' if by_size else 'threads'}", note))
    if any(row[0] != "overlap" for row in rows):
        tell_offloading(provider, rows)


def kicks(options, provider, points):
    print(f"\n{provider}: DIMMnet-1{'':35} {'ns':>9} {'interval':>10} {'floor':>9}")
    for point in points:
        print(f"  {KICKS[point.key]:44} {point.mean():9.1f} +-{point.half_interval():8.1f} "
              f"{point.floor():9.1f}")
    write(options.out / f"kicks_{provider}.csv",
          ["test", "what", "ns", "half_interval_ns", "floor_ns", "runs"],
          [(point.key, KICKS[point.key], f"{point.mean():.1f}", f"{point.half_interval():.1f}",
            f"{point.floor():.1f}", len(point.had)) for point in points])


def asked(options, points):
    """Each beside what is asked; the runs' own ratios, since a floor changes from run to run."""
    rows = []
    print(f"\n{'asked':40} {'at most':>16} {'had':>9} {'x floor':>8}")
    for point in points:
        _, _, kind, limit = ASKED[point.key]
        ratio = statistics.median(had / floor for had, floor in zip(point.had, point.floors))
        had = statistics.median(point.had)
        met = {"ns": lambda: had <= limit, "floor": lambda: ratio <= limit,
               "or": lambda: ratio <= limit[0] or had <= limit[1]}[kind]()
        text = {"ns": f"{limit} ns", "floor": f"{limit} x floor",
                "or": f"{limit[0] if kind == 'or' else ''} x or {limit[1] if kind == 'or' else ''} ns"}[kind]
        print(f"  {point.key:38} {text:>16} {had:9.1f} {ratio:8.2f}  {'met' if met else 'NOT MET'}")
        rows.append((point.key, point.provider, text, f"{had:.1f}", f"{ratio:.2f}", len(point.had),
                     "met" if met else "not met"))
    write(options.out / "layer_asked.csv",
          ["what", "provider", "at_most", "median_ns", "ratio", "runs", "met"], rows)


def options_of_line():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hiroba", help="the command that measures")
    parser.add_argument("--data", type=pathlib.Path, help="layer: draw this in place of measuring")
    parser.add_argument("--providers", nargs="+", default=["shm", "udp"])
    parser.add_argument("--minutes", type=float, default=10, help="of all together")
    parser.add_argument("--repeat", type=int, default=32, help="runs of each point at most")
    parser.add_argument("--milliseconds", type=int, default=20, help="of each run")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 2048, 65536])
    parser.add_argument("--out", default="docs/figures", type=pathlib.Path)
    parser.add_argument("what", nargs="*", help="layer, kicks, asked; all of them")
    options = parser.parse_args()
    options.what = options.what or ["layer", "kicks", "asked"]
    for what in options.what:
        if what not in ("layer", "kicks", "asked"):
            parser.error(f"{what}: must be one of layer, kicks, asked")
    if options.data and (options.what != ["layer"] or len(options.providers) != 1):
        parser.error("--data: only the figures of layer are drawn from data, of one provider; name layer "
                     "and --providers with one")
    if not options.hiroba and not options.data:
        parser.error("--hiroba: needed to measure; --data draws without")
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = options_of_line()
    if options.data:
        layer(options, options.providers[0], rows_in(options.data), None)
        return 0
    points = points_of(options)
    others = take(points, options)
    for provider in options.providers:
        here = [point for point in points if point.provider == provider]
        if "layer" in options.what:
            layer(options, provider, [(*point.key, point.mean(), point.half_interval(), point.floor(),
                                       len(point.had)) for point in here if point.part == "layer"], others)
        if "kicks" in options.what:
            kicks(options, provider, [point for point in here if point.part == "kicks"])
    if "asked" in options.what:
        asked(options, [point for point in points if point.part == "asked"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
