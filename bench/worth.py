#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What each guess of the engine is worth: programs as they are and with the guess switched off, in turns; and, where hiroba
has SimGrid, what `hiroba predict` makes of a recording of either on other wires.

    bench/worth.py --hiroba build/bin/hiroba [--rounds 5] [--nodes 2] [--wires 10GbE hdr-ib] [--predicted-nodes 8]
        [--only exclusive ...] [--program "NAME=COMMAND" ...] [--record docs/results/worth.csv]

Prints how many times as long a program takes without the guess: the least of the runs, which says nothing below some 10 %
on a machine that is not free; and the same of the predictions' middle. A guess that nowhere gains 3 % may go.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import record
import recording_cost

# Each guess, and the settings without it.
GUESSES = {
    "exclusive": ("what one node uses is not compared", {"HIROBA_EXCLUSIVE": "off"}),
    "follow": ("synchronizations bring what was used", {"HIROBA_FOLLOW": "off"}),
    "windows": ("news by windows of shared memory", {"HIROBA_NEWS": "message"}),
    "notices": ("1,024 notices are remembered", {"HIROBA_NOTICES": "1"}),
    "regions": ("regions may stay on node 0", {"HIROBA_REGIONS": "spread"}),
}


def middle_of(words, file, wire):
    """What a recording comes to on a wire, in nanoseconds; None: it cannot be told."""
    done = subprocess.run([words.hiroba, "predict", file, "--json", "--wire", wire, "--nodes", str(words.predicted_nodes)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    told = json.loads(done.stdout)["predictions"][0]
    return (told["best"]["ns"] + told["worst"]["ns"]) / 2


class Program:
    """A program's runs, and predictions of their recordings, by guess that is off; "": none."""

    def __init__(self, words, command, folder):
        self.words, self.command, self.folder = words, command, pathlib.Path(folder)

    def settings(self, guess):
        # All regions spread, but for the guess that they may stay.
        kept = {} if guess == "regions" else {"HIROBA_REGIONS": "spread"}
        return {**kept, **(GUESSES[guess][1] if guess else {})}

    def times(self, guess):
        """With and without the guess: least of the runs, and what each wire makes of it."""
        on = {"HIROBA_REGIONS": "auto"} if guess == "regions" else {}
        ways = {"on": {**self.settings(""), **on}, "off": self.settings(guess)}
        taken, predicted = {way: [] for way in ways}, {way: {} for way in ways}
        for _ in range(self.words.rounds):
            for way, settings in ways.items():
                taken[way].append(recording_cost.seconds_of(self.words, self.command, settings=settings))
        for way, settings in ways.items():
            file = self.folder / f"{way}.hrec"
            recording_cost.seconds_of(self.words, self.command, file, settings)
            # A run that stays on one node has nothing to replay.
            for wire in self.words.wires if guess != "regions" else []:
                predicted[way][wire] = middle_of(self.words, file, wire)
        return {way: min(seconds) for way, seconds in taken.items()}, predicted


def ratio(off, on):
    return f"{off / on:.2f}" if on and off else "–"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--wires", nargs="*", default=["10GbE", "hdr-ib"])
    parser.add_argument("--predicted-nodes", type=int, default=8)
    parser.add_argument("--only", nargs="+", choices=GUESSES, default=list(GUESSES))
    parser.add_argument("--program", nargs="+")
    parser.add_argument("--record")
    words = parser.parse_args()
    if not (pathlib.Path(words.hiroba).parent / "hiroba-predict").exists():
        words.wires = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in recording_cost.chosen(words, folder).items():
            program = Program(words, command, folder)
            for guess in words.only:
                seconds, predicted = program.times(guess)
                row = {"program, and what is switched off": f"{name}: {GUESSES[guess][0]}",
                       "with it": f"{seconds['on'] * 1e3:.0f} ms",
                       f"times as long without, {words.nodes} nodes here": ratio(seconds["off"], seconds["on"])}
                for wire in words.wires:
                    row[f"predicted, {words.predicted_nodes} nodes, {wire}"] = ratio(
                        predicted["off"].get(wire), predicted["on"].get(wire))
                print("  ".join(row.values()), flush=True)
                if words.record:
                    record.append(words.record, words.hiroba, row)


if __name__ == "__main__":
    main()
