#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Public programs that nobody tuned for, as they come, beside libgomp: the whole table in one command.

    bench/not_tuned_for.py --hiroba build/bin/hiroba --sources DIR --list       what it would run, and what DIR lacks
    bench/not_tuned_for.py --hiroba build/bin/hiroba --sources DIR [--rounds 3] [--only REGEX] [--long]
        [--dear | --one-node] [--set NAME=VALUE ...] [--record docs/results/not_tuned_for.csv]

DIR has clones of the repositories of public_programs.py; programs are built into DIR/bin, once, by -O3 -fopenmp. Each runs once with
its answer checked, by itself or by libgomp's, and with HIROBA_STATS=1, which says whether each node took part; then in turns with
libgomp and on nodes, A B A B, and medians are compared. A row whose answer is wrong, that fails or that exceeds --limit is recorded as
such, and the command goes on. Seconds are the program's own where it tells some, and of the whole process otherwise. All regions are
spread unless HIROBA_REGIONS says otherwise.

--dear    each fault takes 15 us more (HIROBA_DEARER_FAULT); twice the bounds
--one-node  one node of as many threads; 1.03 is the bound of all rows
"""
import argparse
import contextlib
import dataclasses
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import answers
import public_programs
import record
from npb import REGIONS
from clean_environment import clean_environment

DEARER_US = 15
ONE_NODE_BOUND = 1.03
COLUMNS = ("program", "libgomp, 2 threads", "2 nodes of one thread", "times libgomp")


class Failed(Exception):
    """Why a run does not count: a short word, and more."""

    def __init__(self, word, more=""):
        super().__init__(word)
        self.word, self.more = word, more


@dataclasses.dataclass
class Outcome:
    """What a figure came to; no medians: it failed."""
    name: str
    bound: float
    libgomp: float = 0.0
    hiroba: float = 0.0
    failure: str = ""   # a word for the table
    threads: int = 2    # of libgomp
    once: str = ""

    @property
    def ratio(self):
        return None if self.failure else self.hiroba / self.libgomp

    @property
    def met(self):
        return not self.failure and self.ratio <= self.bound


def seconds_text(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds:.3f} s".removeprefix("0")


def over(outcome, limit):
    """The table's words for a run that took longer than `limit`: seconds, and times libgomp."""
    times = f"over {limit / outcome.libgomp:.3g}" if outcome.libgomp else "–"
    return f"over {limit:g} s", times


def cells(outcome, limit):
    """A row of the table, in its columns."""
    libgomp = seconds_text(outcome.libgomp) if outcome.libgomp else "–"
    if outcome.threads == 1:
        libgomp += " (one thread)"
    if outcome.failure == "over":
        return (outcome.name, libgomp, *over(outcome, limit))
    if outcome.failure:
        return outcome.name, libgomp, outcome.failure, "–"
    return outcome.name, libgomp, seconds_text(outcome.hiroba), f"{outcome.ratio:.2f}"


def mean_of(outcomes):
    """The geometric mean of all ratios, figures with the same `once` as one; None: there is none."""
    groups = {}
    for outcome in outcomes:
        if outcome.ratio:
            groups.setdefault(outcome.once or outcome.name, []).append(math.log(outcome.ratio))
    logarithms = [statistics.mean(group) for group in groups.values()]
    return math.exp(statistics.mean(logarithms)) if logarithms else None


def end_group(process):
    """Ends a job by its launcher, which ends its nodes."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=10)
            return
        except subprocess.TimeoutExpired:
            continue


class Runs:
    """Runs programs bare and on nodes, each in a folder of its own; what they print lies there as `stdout` and `stderr`."""

    def __init__(self, options, settings):
        self.options, self.settings = options, settings
        self.watch = contextlib.nullcontext  # what looks at a run's process while it lasts, by its id

    def words(self, arguments, threads):
        inputs = public_programs.input_files(self.options.sources) if "{inputs}" in arguments else ""
        return [word.format(threads=threads, inputs=inputs) for word in arguments.split()]

    def run(self, command, environment, folder, status, limit):
        """Seconds of the whole process."""
        environment = {**clean_environment("OMP_"), **environment}
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            begun = time.monotonic()
            process = subprocess.Popen(list(map(str, command)), cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=err, start_new_session=True)
            try:
                with self.watch(process.pid):
                    process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                end_group(process)
                raise Failed("over") from None
            seconds = time.monotonic() - begun
        if process.returncode != status:
            last = (folder / "stderr").read_text(errors="replace").strip().splitlines()[-1:]
            raise Failed(f"status {process.returncode}", " ".join(last))
        return seconds

    def bare(self, row, program, arguments, folder, threads):
        command = [program, *self.words(arguments, threads)]
        return self.run(command, {"OMP_NUM_THREADS": str(threads)}, folder, row.status, self.options.limit)

    def on_nodes(self, row, program, arguments, folder, more=None):
        nodes, threads = (1, 2) if self.options.one_node else (2, 1)
        command = [self.options.hiroba, "run", "-n", str(nodes), "--threads", str(threads), "--", program,
                   *self.words(arguments, 2)]
        return self.run(command, {**self.settings, **(more or {})}, folder, row.status, self.options.limit)


def check_nodes(text, nodes):
    """Each node must have run a region, by the table of HIROBA_STATS."""
    told = REGIONS.search(text)
    regions = [int(word) for word in told[1].split()[:-1]] if told else []
    if len(regions) != nodes or min(regions) == 0:
        raise Failed("a node took no part", f"regions of the nodes: {regions}")


def seconds_of(figure, folder, whole):
    if not figure.seconds:
        return whole
    told = re.findall(figure.seconds, (folder / "stdout").read_text(errors="replace"), re.MULTILINE)
    if len(told) != 1:
        raise Failed("told no time", figure.seconds)
    seconds = float(told[0]) * figure.scale
    if not 0 < seconds <= whole:
        raise Failed("told no time", f"{seconds:g} of {whole:g} s")
    return seconds


class Measurement:
    """One row: builds, checks, and runs in turns."""

    def __init__(self, runs, row, folder):
        self.runs, self.row, self.folder = runs, row, folder
        self.outcomes = [Outcome(figure.name, bound_of(figure, runs.options), threads=1 if figure.one_thread else 2, once=figure.once)
                         for figure in row.figures]
        self.reference = None

    def place(self, name):
        """An empty folder for a run."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def program(self, name):
        program, why = public_programs.built(self.runs.options.sources, name)
        if why:
            raise Failed("does not build", why)
        return program

    def check(self):
        """Answer and nodes, on a run that is not timed."""
        row = self.row
        program = self.program(row.check_program or row.program)
        arguments = row.check_arguments if row.check_program else row.arguments
        bare, ours = self.place("check_libgomp"), self.place("check_hiroba")
        try:
            self.runs.bare(row, program, arguments, bare, 2)
            answers.check_own(row, bare)
        except (Failed, answers.Wrong) as failed:
            raise Failed("libgomp fails", str(failed)) from failed
        self.reference = bare
        self.runs.on_nodes(row, program, arguments, ours, {"HIROBA_STATS": "1"})
        answers.check(row, ours, bare)
        check_nodes((ours / "stderr").read_text(errors="replace"), 1 if self.runs.options.one_node else 2)

    def figures(self, folder, whole, one_thread=None):
        """Seconds of each figure, or of those that are beside one thread or beside two."""
        return {figure.name: seconds_of(figure, folder, whole) for figure in self.row.figures
                if one_thread is None or figure.one_thread == one_thread}

    def in_turns(self):
        row, program = self.row, self.program(self.row.program)
        taken = {figure.name: ([], []) for figure in row.figures}
        libgomps = sorted({1 if figure.one_thread else 2 for figure in row.figures})
        try:
            for _ in range(self.runs.options.rounds):
                for threads in libgomps:
                    folder = self.place("libgomp")
                    whole = self.runs.bare(row, program, row.arguments, folder, threads)
                    for name, seconds in self.figures(folder, whole, threads == 1).items():
                        taken[name][0].append(seconds)
                folder = self.place("hiroba")
                whole = self.runs.on_nodes(row, program, row.arguments, folder)
                for name, seconds in self.figures(folder, whole).items():
                    taken[name][1].append(seconds)
                if not row.check_program:
                    answers.check(row, folder, self.reference)
        finally:
            for outcome in self.outcomes:
                bare, ours = taken[outcome.name]
                outcome.libgomp = statistics.median(bare) if bare else 0.0
                outcome.hiroba = statistics.median(ours) if ours else 0.0

    def libgomp_alone(self):
        """libgomp's seconds, where only they are left to tell."""
        if not self.reference:
            return
        row, program = self.row, self.program(self.row.program)
        for outcome, figure in zip(self.outcomes, row.figures):
            if not outcome.libgomp:
                folder = self.place("libgomp")
                whole = self.runs.bare(row, program, row.arguments, folder, outcome.threads)
                outcome.libgomp = seconds_of(figure, folder, whole)

    def take(self):
        """The outcomes, and what went wrong."""
        try:
            self.check()
            self.in_turns()
        except (Failed, answers.Wrong) as failed:
            word = failed.word if isinstance(failed, Failed) else "wrong answer"
            for outcome in self.outcomes:
                outcome.failure = word
            with contextlib.suppress(Failed):
                self.libgomp_alone()
            return self.outcomes, f"{word}: {failed.more if isinstance(failed, Failed) else failed}"
        return self.outcomes, ""


def bound_of(figure, options):
    if options.one_node:
        return ONE_NODE_BOUND
    return figure.bound * (2 if options.dear else 1)


def marked(name, options):
    """The row's name in the record: rows of other settings have their own."""
    if options.dear:
        name += f", each fault {DEARER_US} us dearer"
    return name + (", one node of 2 threads" if options.one_node else "")


def chosen(options):
    rows = public_programs.TINY_ROWS if options.tiny else public_programs.ROWS
    return [row for row in rows if any(re.search(options.only, figure.name) for figure in row.figures) and (options.long or not row.long)]


def missing_for(row, sources):
    return sorted(filter(None, (public_programs.why_missing(sources, name) for name in public_programs.needs(row))))


def list_rows(rows, options):
    for row in rows:
        why = missing_for(row, options.sources)
        for figure in row.figures:
            print(f"{figure.name:52} {bound_of(figure, options):5.2f}" + (f"  first: {why[0]}" if why else ""))


def settings_of(options):
    """hiroba's settings: the caller's, but no statistics and such unless they are asked for by --set."""
    named = dict(word.split("=", 1) for word in options.set)
    return {**({"HIROBA_DEARER_FAULT": str(DEARER_US)} if options.dear else {}), **named}


def note_of(options, settings):
    told = {"HIROBA_REGIONS": os.environ.get("HIROBA_REGIONS", "spread"), **settings}
    return f"medians of {options.rounds} in turns, " + " ".join(f"{name}={value}" for name, value in sorted(told.items()))


def show(outcome, options):
    told = cells(outcome, options.limit)
    print(f"{told[0]:52} {told[1]:>20} {told[2]:>14} {told[3]:>14} {outcome.bound:6.2f}  {'met' if outcome.met else 'NOT met'}",
          flush=True)


def measure(rows, options):
    settings = settings_of(options)
    runs, all_outcomes, absent = Runs(options, settings), [], []
    print(f"{COLUMNS[0]:52} {'libgomp':>20} {'hiroba':>14} {'times':>14} {'bound':>6}")
    with tempfile.TemporaryDirectory(prefix="not_tuned_for") as folder:
        for row in rows:
            if why := missing_for(row, options.sources):
                absent += [(figure.name, why[0]) for figure in row.figures]
                continue
            outcomes, wrong = Measurement(runs, row, Path(folder)).take()
            for outcome in outcomes:
                show(outcome, options)
                if options.record:
                    told = cells(outcome, options.limit)
                    record.append(options.record, options.hiroba, dict(zip(COLUMNS, (marked(told[0], options), *told[1:]))),
                                  note=note_of(options, settings))
            if wrong:
                print(f"    {wrong}", flush=True)
            all_outcomes += outcomes
    for name, why in absent:
        print(f"{name:52} not measured: {why}")
    return all_outcomes


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", type=Path, required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--only", default="", help="rows whose names match")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120, help="seconds of a run")
    parser.add_argument("--long", action="store_true", help="rows that take minutes, too")
    parser.add_argument("--tiny", action="store_true", help="a small program of our own alone, for a test of this command")
    parser.add_argument("--list", action="store_true")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--dear", action="store_true")
    other.add_argument("--one-node", action="store_true")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of hiroba")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args(words)
    options.hiroba, options.sources = options.hiroba.resolve(), options.sources.resolve()
    if any("=" not in word for word in options.set):
        parser.error("--set takes NAME=VALUE")
    if options.rounds < 1:
        parser.error("--rounds is at least 1")
    return options


def main():
    options = parse()
    rows = chosen(options)
    if not rows:
        sys.exit(f"--only {options.only}: no row has such a name")
    if options.list:
        list_rows(rows, options)
        return 0
    outcomes = measure(rows, options)
    if not outcomes:
        return 78
    mean = mean_of(outcomes)
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    print(f"geometric mean {f'{mean:.2f}' if mean else '–'}, {sum(outcome.met for outcome in outcomes)} of {len(outcomes)} met, "
          f"{failed} without a ratio")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
