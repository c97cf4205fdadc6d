#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs applications of Debian, untouched, alone and under `hiroba run`, and compares their results.

    run.py --hiroba build/bin/hiroba                     those that are installed, on two nodes
    run.py --hiroba build/bin/hiroba --install           fetches the packages first (root)
    run.py --hiroba build/bin/hiroba --only numpy
    run.py --hiroba build/bin/hiroba --table docs/results/debian_applications.csv

A job is right when its status is 0 and all that it prints and writes is as alone with as many threads: words equal,
numbers within the job's tolerance. It is also run alone twice: what differs there is no result, and says so. A
row tells what hiroba said of nodes without work, which is no fault: what such programs do on small inputs may have no
region, or stay where it takes less time. Times are of the whole run, start included, on whatever the machine does
besides: no figures of speed.
"""
import argparse
import csv
import datetime
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import jobs
from clean_environment import clean_environment

FORMS = [("two nodes", 2, 1, {}), ("two nodes of two threads", 2, 2, {}),
         ("two nodes over udp", 2, 1, {"HIROBA_PROVIDER": "udp"})]
NUMBER = re.compile(rb"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


class Outcome:
    def __init__(self, status, out, err, files, seconds):
        self.status, self.out, self.err, self.files, self.seconds = status, out, err, files, seconds


def run(job, command, folder, threads, limit, more=None):
    """In a fresh copy of the job's folder: no run finds what another has left."""
    with tempfile.TemporaryDirectory(prefix="app") as name:
        place = pathlib.Path(name) / "job"
        shutil.copytree(folder, place)
        environment = clean_environment("OMP_") | job.environment | (more or {})
        environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "LC_ALL": "C",
                        "MAGICK_THREAD_LIMIT": str(threads), "HOME": name}
        begin = time.monotonic()
        try:
            done = subprocess.run(command, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=limit)
        except subprocess.TimeoutExpired as late:
            return Outcome(None, late.stdout or b"", late.stderr or b"", [], limit)
        seconds = time.monotonic() - begin
        files = [(place / one).read_bytes() if (place / one).exists() else None for one in job.files]
        return Outcome(done.returncode, done.stdout, done.stderr, files, seconds)


def words_and_numbers(text, noise):
    kept = [line for line in text.splitlines() if not noise or not re.search(noise.encode(), line)]
    joined = b"\n".join(kept)
    return NUMBER.sub(b"#", joined), [float(one) for one in NUMBER.findall(joined)]


def differs(alone, other, job, noise):
    """The first difference of two texts, or nothing."""
    if job.tolerance == 0 and not noise:
        return "" if alone == other else "not the same bytes"
    words, numbers = words_and_numbers(alone, noise)
    other_words, other_numbers = words_and_numbers(other, noise)
    if words != other_words:
        return "other words"
    for first, second in zip(numbers, other_numbers):
        if abs(first - second) > job.tolerance * max(1.0, abs(first), abs(second)):
            return f"{second!r} for {first!r}"
    return ""


def compare(alone, other, job):
    if other.status is None:
        return f"not through after {other.seconds:.0f} s"
    if other.status != 0:
        return f"status {other.status}: {other.err[-200:].decode(errors='replace').strip()}"
    if found := differs(alone.out, other.out, job, job.noise):
        return f"standard output: {found}"
    for name, one, two in zip(job.files, alone.files, other.files):
        if two is None or (found := differs(one, two, job, "")):
            return f"{name}: {'missing' if two is None else found}"
    return ""


def judge(job, options):
    """A row: name, seconds alone, and what each form gave."""
    with tempfile.TemporaryDirectory(prefix="app") as name:
        folder = pathlib.Path(name)
        if job.write is not None:
            job.write(folder)
        row, alone = {"application": job.name}, {}
        for title, nodes, threads, more in FORMS:
            if options.form and options.form not in title:
                continue
            team = nodes * threads
            command = [shutil.which(job.program), *job.command(team)]
            if team not in alone:
                alone[team] = run(job, command, folder, team, options.limit)
            bare = alone[team]
            if bare.status != 0 or None in bare.files:
                what = bare.err[-200:].decode(errors="replace").strip()
                row[title] = f"does not run alone: status {bare.status} {what}"
                continue
            row.setdefault("alone", f"{bare.seconds:.1f} s")
            spread = run(job, [options.hiroba, "run", "-n", str(nodes), "--threads", str(threads), "--", *command], folder,
                         team, options.limit, more)
            wrong = compare(bare, spread, job)
            if wrong and compare(bare, run(job, command, folder, team, options.limit), job):
                wrong = "differs alone, too, from run to run"
            row[title] = wrong or f"as alone, {spread.seconds:.1f} s{idle(spread.err)}"
            print(f"{'FAIL' if wrong else 'ok  '} {job.name}, {title}: {row[title]}", flush=True)
        return row


def idle(err):
    """What hiroba said of nodes that had no work, in short."""
    text = err.decode(errors="replace")
    notes = [f"{which} without a region" for which in re.findall(r"hiroba: (nodes? \d+(?: to \d+)?) ran no", text)]
    if re.search(r"^hiroba: .* stayed on node 0", text, re.MULTILINE):
        notes.append("some regions stayed on node 0")
    return "".join(f"; {note}" for note in notes)


def commit():
    done = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-parse", "--short=8", "HEAD"], text=True,
                          capture_output=True, check=False)
    return done.stdout.strip() or "unknown"


def write_table(path, rows):
    titles = ["application", "alone", *[title for title, *_ in FORMS], "date", "commit"]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, titles, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            plain = {key: " ".join(value.split()) for key, value in row.items()}
            writer.writerow(plain | {"date": datetime.date.today().isoformat(), "commit": commit()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--only", default="", help="applications whose name contains this")
    parser.add_argument("--form", default="", help="forms whose name contains this")
    parser.add_argument("--limit", type=int, default=300, help="seconds of each run")
    parser.add_argument("--install", action="store_true", help="apt-get install what is missing")
    parser.add_argument("--table", help="a file for what came out")
    options = parser.parse_args()
    options.hiroba = str(pathlib.Path(options.hiroba).resolve())
    wanted = [job for job in jobs.all_jobs() if options.only in job.name]
    if options.install:
        packages = sorted({package for job in wanted if not job.is_installed() for package in job.packages})
        if packages:
            subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", *packages], check=True)
    rows = []
    for job in wanted:
        if job.is_installed():
            rows.append(judge(job, options))
            if options.table:
                write_table(options.table, rows)
        else:
            print(f"skip {job.name}: not installed ({' '.join(job.packages)})", flush=True)
    wrong = [row["application"] for row in rows if any(not str(row.get(t, "as alone")).startswith("as alone")
                                                       for t, *_ in FORMS)]
    print(f"{len(rows) - len(wrong)} of {len(rows)} as alone" + (f"; not: {', '.join(wrong)}" if wrong else ""))
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
