#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `hiroba predict` says of programs on 2 to 64 nodes of three networks: the least disturbed of some recordings of two
nodes, replayed.

    bench/predicted_growth.py --hiroba build/bin/hiroba [--rounds 5] [--nodes 2,4,8,16,32,64] [--program "NAME=COMMAND" ...]
        [--out docs/figures] [--record docs/results/predicted_growth.csv]

Without --program: those of bench/recording_cost.py, EP and the cured and ill loops of test/cluster/illnesses. Writes
predicted_growth.csv and predicted_growth.svg: a panel for each network, over the nodes how many times as fast as one host
with one thread, both axes logarithmic; a line is the middle of what is predicted at best and at worst.
"""
import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import record
import recording_cost

WIRES = ["10GbE", "100GbE", "hdr-ib"]
LOOPS = {"columns shared out": ("column_wise", "ill"), "rows shared out": ("column_wise", "cured"),
         "false sharing": ("false_sharing", "ill"), "a loop that is balanced": ("unbalanced", "cured"),
         "hot lock": ("hot_lock", "ill")}
COLOURS = ["#1b6ca8", "#c44e28", "#2f8f4e", "#8a4fa3", "#b58a00", "#00838f", "#ad1457", "#5d4037", "#546e7a", "#7cb342"]
WIDTH, PANEL, HEIGHT, MARGIN, LEGEND = 1040, 260, 360, 44, 240
SHOWN_NODES = 16


def programs(words, folder):
    chosen = recording_cost.chosen(words, folder)
    if words.program:
        return chosen
    target = pathlib.Path(folder) / "illnesses"
    source = recording_cost.ROOT / "test/cluster/illnesses/illnesses.c"
    subprocess.run(["gcc", "-O2", "-fopenmp", source, "-o", target, "-lm"], check=True)
    chosen["EP, class S"] = [recording_cost.build("ep", folder), "S"]
    return {**chosen, **{name: [target, *command, "3"] for name, command in LOOPS.items()}}


def best_recording(words, command, folder):
    """Of some recordings that whose program ran shortest."""
    best, least = pathlib.Path(folder) / "best.hrec", math.inf
    for _ in range(words.rounds):
        file = pathlib.Path(folder) / "r.hrec"
        recording_cost.seconds_of(words, command, file)
        told = json.loads(subprocess.run([words.hiroba, "report", file, "--json"], check=True, capture_output=True,
                                         text=True).stdout)
        if told["wall_ns"] < least:
            least = told["wall_ns"]
            file.replace(best)
    return best


def rows_of(words, name, file):
    for wire in WIRES:
        done = subprocess.run([words.hiroba, "predict", file, "--json", "--wire", wire, "--nodes", words.nodes_predicted],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr}")
        told = json.loads(done.stdout)
        for each in told["predictions"]:
            limits = sorted(each["worst"]["limits"].items(), key=lambda limit: -limit[1])
            limit = next(key for key, _ in limits if key != "computing" or limits[0][1] > .8)
            yield {"program": name, "wire": wire, "nodes": each["nodes"],
                   "times_one_host_low": round(told["one_host_ns"] / each["high_ns"], 3),
                   "times_one_host_high": round(told["one_host_ns"] / each["low_ns"], 3), "limit": limit}


def middle(row):
    return math.sqrt(row["times_one_host_low"] * row["times_one_host_high"])


def scale(power):
    return f"{2 ** power}" if power >= 0 else f"1/{2 ** -power}"


class Figure:
    """Three panels with one scale."""

    def __init__(self, rows):
        self.rows, self.names = rows, list(dict.fromkeys(row["program"] for row in rows))
        self.nodes = sorted({row["nodes"] for row in rows})
        values = [middle(row) for row in rows]
        self.low, self.high = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))

    def x(self, panel, nodes):
        first, last = math.log2(self.nodes[0]), math.log2(self.nodes[-1])
        return MARGIN + panel * PANEL + (PANEL - MARGIN) * (math.log2(nodes) - first) / max(last - first, 1)

    def y(self, value):
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (math.log2(value) - self.low) / max(self.high - self.low, 1)

    def panel(self, number, wire):
        left, right, bottom = self.x(number, self.nodes[0]), self.x(number, self.nodes[-1]), HEIGHT - MARGIN
        yield f'<path d="M{left} {MARGIN}V{bottom}H{right}" fill="none" stroke="black"/>'
        yield f'<text x="{left}" y="{MARGIN - 18}">{wire}</text>'
        for nodes in self.nodes:
            yield f'<text x="{self.x(number, nodes):.1f}" y="{bottom + 18}" text-anchor="middle">{nodes}</text>'
        for power in range(self.low, self.high + 1, 2):
            yield f'<text x="{left - 6}" y="{self.y(2 ** power) + 4:.1f}" text-anchor="end">{scale(power)}</text>'
        yield f'<path d="M{left} {self.y(1):.1f}H{right}" stroke="grey" stroke-dasharray="2 4"/>'
        for name, colour in zip(self.names, COLOURS):
            points = " ".join(f'{self.x(number, row["nodes"]):.1f},{self.y(middle(row)):.1f}' for row in self.rows
                              if row["program"] == name and row["wire"] == wire)
            yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'

    def draw(self):
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
                 f'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
        for number, wire in enumerate(WIRES):
            parts += self.panel(number, wire)
        parts.append(f'<text x="{MARGIN}" y="{HEIGHT - 8}">nodes; upwards: times as fast as one host with one thread</text>')
        for at, (name, colour) in enumerate(zip(self.names, COLOURS)):
            y = MARGIN + 20 * at
            parts.append(f'<path d="M{WIDTH - LEGEND} {y}h18" stroke="{colour}" stroke-width="3"/>')
            parts.append(f'<text x="{WIDTH - LEGEND + 24}" y="{y + 4}">{name}</text>')
        return "\n".join([*parts, "</svg>"]) + "\n"


def keep(words, rows):
    """The table of the page: one number of nodes."""
    for name in dict.fromkeys(row["program"] for row in rows):
        shown = [row for row in rows if row["program"] == name and row["nodes"] == SHOWN_NODES]
        record.append(words.record, words.hiroba, {
            "program": name, **{f"{row['wire']}, {SHOWN_NODES} nodes": f"{row['times_one_host_low']:.2g} .. "
                                f"{row['times_one_host_high']:.2g}, {row['limit']}" for row in shown}})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", dest="nodes_predicted", default="2,4,8,16,32,64")
    parser.add_argument("--program", nargs="+")
    parser.add_argument("--out", default="docs/figures")
    parser.add_argument("--record")
    words = parser.parse_args()
    words.nodes = 2
    if not (pathlib.Path(words.hiroba).parent / "hiroba-predict").exists():
        print("this hiroba was built without SimGrid")
        sys.exit(77)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in programs(words, folder).items():
            rows += rows_of(words, name, best_recording(words, command, folder))
            print(name, *(f"{row['wire']} {row['nodes']}: {middle(row):.2f} {row['limit']};" for row in rows
                          if row["program"] == name), flush=True)
    out = pathlib.Path(words.out)
    with (out / "predicted_growth.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (out / "predicted_growth.svg").write_text(Figure(rows).draw())
    if words.record:
        keep(words, rows)


if __name__ == "__main__":
    main()
