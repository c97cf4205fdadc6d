#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is there a size at which a program suddenly takes much longer? Time by size, of programs that nobody tuned for, beside libgomp.

    bench/no_cliff.py --hiroba build/bin/hiroba --sources DIR [--rounds 3] [--only builder adi own_data] [--sizes SIZE ...]
        [--set NAME=VALUE ...] [--out docs/figures]

builder   GAP's, `bfs -g 14` to `-g 20`: where a graph of 2^g vertices is built, beside one thread
adi       sweeps over a cube of 64 to 320 points an edge, a step
own_data  a loop whose threads write 1 MB to 1 GB of their own, a region

DIR is as for not_tuned_for.py. Prints medians, and each step between sizes at which a doubling of the work takes more than 2.5 times as
long; of libgomp's, too, since a cache that ends is a cliff of the machine. Writes no_cliff.csv and no_cliff.svg into --out.
"""
import argparse
import csv
import dataclasses
import math
import statistics
import sys
import tempfile
from pathlib import Path

import not_tuned_for
import public_programs
import record
from figure import HEIGHT, MARGIN, WIDTH, axes
from public_programs import Figure, Row

STEP_MAX = 2.5
COLOURS = ("#3182bd", "#e6550d", "#31a354")


@dataclasses.dataclass(frozen=True)
class Curve:
    name: str
    about: str
    sizes: tuple
    unit: str  # with {} for the size

    def work(self, size):
        return float({"builder": lambda: 2 ** size, "adi": lambda: size ** 3, "own_data": lambda: size}[self.name]())

    def repetitions(self, size):
        """So many that short ones can be timed and long ones end."""
        return max(3, min(200, int(2e7 / self.work(size)))) if self.name == "adi" else max(3, min(200, 2000 // size))

    def row(self, size):
        """How a size is run; the figure is seconds of one repetition."""
        if self.name == "builder":
            return Row("gap_bfs", f"-g {size} -n 1", (Figure("", 0, r"Build Time:\s*([\d.]+)", one_thread=True),))
        times = self.repetitions(size)
        if self.name == "adi":
            return Row("adi", f"{size} {times}", (Figure("", 0, r"^seconds ([\d.]+)", scale=1 / times),), same=(r"^sum (\S+)",))
        return Row("own_data", f"{size} {times}", (Figure("", 0, r"^seconds ([\d.]+)"),), right="^right$")


CURVES = {curve.name: curve for curve in (
    Curve("builder", "GAP's builder", tuple(range(14, 21)), "2^{} vertices"),
    Curve("adi", "ADI, a step", (64, 80, 101, 128, 161, 203, 256, 320), "{} points an edge"),
    Curve("own_data", "own data, a region", tuple(2 ** i for i in range(11)), "{} MB"))}


def growth(before, after, works):
    """How many times as long a doubling of the work takes."""
    return (after / before) ** (1 / math.log2(works[1] / works[0]))


def steps(rows):
    """[(row before, row, hiroba's growth a doubling, libgomp's)] of the sizes of one curve that were measured."""
    return [(one, other, *(growth(one[who], other[who], (one["work"], other["work"])) for who in ("hiroba", "libgomp")))
            for one, other in zip(rows, rows[1:])]


def cliffs(rows):
    return [step for step in steps(rows) if step[2] > STEP_MAX]


def measure(curve, sizes, runs, folder):
    """Rows of {size, work, libgomp, hiroba}, medians in seconds; and how many sizes have none."""
    rows, failed = [], 0
    for size in sizes:
        measurement = not_tuned_for.Measurement(runs, curve.row(size), folder)
        outcomes, wrong = measurement.take()
        if wrong:
            print(f"{curve.name} {size}: {wrong}", flush=True)
            failed += 1
            continue
        row = {"curve": curve.name, "size": size, "work": curve.work(size), "libgomp": outcomes[0].libgomp, "hiroba": outcomes[0].hiroba}
        rows.append(row)
        told = f"{curve.name:9} {size:5} {row['libgomp']:10.6f} s {row['hiroba']:10.6f} s"
        if len(rows) > 1:
            _, _, ours, theirs = steps(rows[-2:])[0]
            told += f"  a doubling: {ours:5.2f}, libgomp {theirs:5.2f}" + ("  CLIFF" if ours > STEP_MAX else "")
        print(told, flush=True)
    return rows, failed


def draw(curves, circumstances):
    """The SVG of {name: rows}: seconds over doublings of the least size, both as powers; dashed: libgomp."""
    points = [(math.log2(row["work"] / rows[0]["work"]), row[who]) for rows in curves.values() for row in rows for who in ("hiroba", "libgomp")]
    last = max(1.0, *(x for x, _ in points))
    low, high = (math.log10(f(seconds for _, seconds in points)) for f in (min, max))
    low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)

    def place(row, rows, who):
        x = MARGIN + (WIDTH - 2 * MARGIN) * math.log2(row["work"] / rows[0]["work"]) / last
        return f"{x:.1f},{HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (math.log10(row[who]) - low) / (high - low):.1f}"

    parts = axes()
    for number, (name, rows) in enumerate(curves.items()):
        colour, curve = COLOURS[number % len(COLOURS)], CURVES[name]
        for who, dashes in (("hiroba", ""), ("libgomp", ' stroke-dasharray="4"')):
            parts.append(f'<polyline points="{" ".join(place(row, rows, who) for row in rows)}" fill="none" stroke="{colour}"{dashes}/>')
        for _, row, *_ in cliffs(rows):
            x, y = place(row, rows, "hiroba").split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="none" stroke="red"/>')
        parts.append(f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - MARGIN - 10 - 16 * number}" text-anchor="end" fill="{colour}">{curve.about}, '
                     f'from {curve.unit.format(rows[0]["size"])}</text>')
    for power in range(low, high + 1):
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (power - low) / (high - low)
        parts.append(f'<text x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    for doubling in range(0, int(last) + 1):
        x = MARGIN + (WIDTH - 2 * MARGIN) * doubling / last
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{2 ** doubling}</text>')
    parts += [f'<text x="{MARGIN - 40}" y="{MARGIN - 16}">seconds; dashed: libgomp; red: more than {STEP_MAX} times a doubling</text>',
              f'<text x="{WIDTH / 2}" y="{HEIGHT - 24}" text-anchor="middle">times the least size</text>',
              f'<text x="{MARGIN - 40}" y="{HEIGHT - 8}" font-size="9">{circumstances["date"]}, commit {circumstances["commit"]}: '
              f'{circumstances["machine"]}</text>', "</svg>"]
    return "\n".join(parts) + "\n"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", type=Path, required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120, help="seconds of a run")
    parser.add_argument("--only", nargs="+", choices=CURVES, default=list(CURVES))
    parser.add_argument("--sizes", nargs="+", type=int, help="instead of the curve's own")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of hiroba")
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    options = parser.parse_args()
    options.hiroba, options.sources, options.one_node, options.dear = options.hiroba.resolve(), options.sources.resolve(), False, False
    return options


def main():
    options = parse()
    runs, curves = not_tuned_for.Runs(options, not_tuned_for.settings_of(options)), {}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="no_cliff") as folder:
        for curve in map(CURVES.get, options.only):
            sizes = options.sizes or curve.sizes
            if why := not_tuned_for.missing_for(curve.row(sizes[0]), options.sources):
                print(f"{curve.name} not measured: {why[0]}")
                continue
            rows, failures = measure(curve, sizes, runs, Path(folder))
            failed += failures
            if rows:
                curves[curve.name] = rows
    if not curves:
        return 1 if failed else 78
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "no_cliff.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, next(iter(curves.values()))[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for rows in curves.values() for row in rows)
    (options.out / "no_cliff.svg").write_text(draw(curves, record.circumstances(options.hiroba)))
    found = [(name, step) for name, rows in curves.items() for step in cliffs(rows)]
    for name, (one, other, ours, theirs) in found:
        print(f"{CURVES[name].about}: from {one['size']} to {CURVES[name].unit.format(other['size'])} a doubling takes {ours:.2f} times as long, "
              f"with libgomp {theirs:.2f}")
    print(f"{len(found)} steps above {STEP_MAX} times a doubling, {failed} sizes without an answer")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
