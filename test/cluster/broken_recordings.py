#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads recordings and platforms that are changed, cut, foreign, or of jobs that were killed: each is read up to
there, or refused by one line and status 78, and nothing crashes.

Thousands of changes go by recording_fuzz (test/fuzz), which prints the command that repeats one. Predictions are
left out where hiroba was built without SimGrid.
Usage: broken_recordings.py --hiroba PATH --fuzz PATH [--rounds N] [--seed N]
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from predict_runs import PLATFORM
from report_runs import Runs

SECONDS = 300  # of wall time: a hang, and no busy machine
# Some of everything that is recorded, and little of it.
PROGRAM = """#include <stdio.h>
#include <stdlib.h>
static double row[4096];
static long counter;
int main(void) {
    double* const heap = malloc(65536);
    double all = 0;
    for (int step = 0; step < 3; ++step) {
#pragma omp parallel reduction(+ : all)
        {
#pragma omp for schedule(dynamic, 512)
            for (int i = 0; i < 4096; ++i) row[i] += i + step;
#pragma omp for
            for (int i = 0; i < 8192; ++i) heap[i] = row[i / 2] + step;
#pragma omp critical
            for (int i = 0; i < 20000; ++i) all += row[i % 4096] / 1e9;
#pragma omp atomic
            ++counter;
#pragma omp single
            for (int i = 0; i < 4; ++i) {
#pragma omp task
                for (int j = 0; j < 512; ++j) row[i * 512 + j] += 1;
            }
        }
    }
    printf("%.3f %ld %d\\n", all, counter, heap[77] > 0);
    free(heap);
}
"""
SECTION_HEAD, NODE_HEAD, CHUNK = 24, 4096, 65536


class Reading:
    """Commands that read recordings."""

    def __init__(self, runs):
        self.runs, self.asked = runs, 0
        self.predicts = (pathlib.Path(runs.hiroba).parent / "hiroba-predict").exists()

    def done(self, *words):
        return subprocess.run([self.runs.hiroba, *words], capture_output=True, text=True, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL, errors="replace")

    def is_fine(self, *words, refused=None):
        """Whether it was refused, and by one line. refused: whether it has to be; None: as it likes."""
        done = self.done(*words)
        lines = done.stderr.splitlines()
        good = done.returncode == 0 and not lines and refused is not True
        bad = done.returncode == 78 and len(lines) == 1 and not done.stdout and refused is not False
        if not good and not bad:
            self.runs.faults.append(f"{words}: status {done.returncode}, said {done.stderr[-500:]}")
        return bad

    def both(self, file, refused=None):
        """A form of the report, each in its turn, and every second time the prediction. Returns whether the report was
        refused."""
        page = self.runs.folder / "page"
        forms = ((), ("--json",), ("--html", page), ("--perfetto", page))
        self.asked += 1
        told = self.is_fine("report", file, *forms[self.asked % len(forms)], refused=refused)
        if self.predicts and self.asked % 2 == 0:
            self.is_fine("predict", file, "--wire", "10GbE", refused=True if told else None)
        return told


def sections_of(content):
    """Where each section's head is, and its bytes."""
    at = 0
    while at + SECTION_HEAD <= len(content):
        size = int.from_bytes(content[at + 16:at + 24], "little")
        yield at, size
        at += SECTION_HEAD + size


def lengths_of(content):
    """One of each kind of place where a file can be cut: in a head, in a text, between chunks, in a record."""
    found = {0, 1, 7, 8, len(content) - 1}
    for at, size in sections_of(content):
        inside = at + SECTION_HEAD
        found |= {at, at + 8, at + 23, inside, inside + 1, inside + size // 2, inside + size - 1}
        if content[at:at + 4] == b"node":
            found |= {inside + 8, inside + NODE_HEAD - 1, inside + NODE_HEAD, inside + NODE_HEAD + 64 + 16,
                      inside + NODE_HEAD + CHUNK, inside + NODE_HEAD + CHUNK + 63}
    return sorted(length for length in found if length < len(content))


def cut(reading, content):
    file = reading.runs.folder / "cut.hrec"
    refused = 0
    for length in lengths_of(content):
        file.write_bytes(content[:length])
        refused += reading.both(file)
    if refused in (0, len(lengths_of(content))):
        reading.runs.faults.append(f"{refused} of all cut recordings are refused")


def foreign(reading, content):
    """What is no recording, is another job's, or only looks like a file."""
    folder = reading.runs.folder
    kinds = {"text": b"nodes 2\nthreads 1\n" * 50, "empty": b"", "zeros": bytes(100_000), "magic": content[:8],
             "tag_of_a_node": content[sections_list(content)[1][0]:], "reversed": content[::-1]}
    for name, its in kinds.items():
        (folder / name).write_bytes(its)
        reading.both(folder / name, refused=True)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    for file in (folder / "folder", folder / "pipe", pathlib.Path("/dev/zero"), pathlib.Path("/proc/self/mem"),
                 folder / "none", pathlib.Path(reading.runs.hiroba)):
        reading.both(file, refused=True)
    # Beside a job's own file: parts of a job with other nodes, one that is cut, one that is a pipe.
    first = content[:sections_list(content)[1][0]]
    parts = [content[at + SECTION_HEAD:at + SECTION_HEAD + size] for at, size in sections_list(content)[1:3]]
    other = bytearray(parts[0])
    other[8:16] = (70_000).to_bytes(4, "little") + (90_000).to_bytes(4, "little")  # its rank, its nodes
    for number, beside in enumerate(([parts[0]], [parts[1], parts[0]], [parts[0], parts[1][:5000]], [parts[0][:4000]],
                                     [bytes(other), parts[1]], [parts[0], None])):
        file = folder / f"beside{number}"
        file.write_bytes(first)
        for rank, part in enumerate(beside):
            if part is None:
                os.mkfifo(f"{file}.{rank}")
            else:
                pathlib.Path(f"{file}.{rank}").write_bytes(part)
        reading.both(file, refused=True if number == 3 else None)


def sections_list(content):
    return list(sections_of(content))


def killed(reading, rng):
    """The launcher is killed, or a node of it, at some moment."""
    runs = reading.runs
    for victim in ("launcher", "node"):
        first = runs.parts()[1]
        with subprocess.Popen(runs.command("needless_barrier", "endless"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as job:
            deadline = time.monotonic() + SECONDS
            least = rng.randrange(300, 1500)
            while time.monotonic() < deadline and (not first.exists() or first.stat().st_blocks < least):
                time.sleep(0.01)
            children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
            os.kill(job.pid if victim == "launcher" else int(children[-1]), signal.SIGKILL)
        reading.both(runs.file, refused=False)
        told = json.loads(runs.report("--json"))
        if told["regions"] != 1 or not any("illnesses.c" in each["place"] for each in told["synchronizations"]):
            runs.faults.append(f"of a job whose {victim} was killed there is {told['regions']}, {told['notes']}")
        if told["status"] == 0 or victim == "launcher" and not any("had not ended" in note for note in told["notes"]):
            runs.faults.append(f"of a job whose {victim} was killed: status {told['status']}, {told['notes']}")


def record_small(runs):
    """Records PROGRAM on two nodes."""
    source = runs.folder / "small.c"
    source.write_text(PROGRAM)
    illnesses, runs.program = runs.program, runs.folder / "small"
    subprocess.run(["gcc", "-g", "-O1", "-fopenmp", source, "-o", runs.program], check=True)
    runs.run()
    runs.program = illnesses


def platforms(reading, file, rng, rounds):
    """Bytes of a platform that are changed, or left out."""
    good = PLATFORM.replace("BANDWIDTH", "1.25GBps").encode()
    changed = reading.runs.folder / "changed.xml"
    told = []
    for turn in range(rounds):
        text = bytearray(good)
        at = rng.randrange(len(text))
        if turn % 3 == 0:
            text[at] = rng.randrange(256)
        elif turn % 3 == 1:
            del text[at:at + rng.randrange(1, 30)]
        else:  # a number is another one
            at = rng.choice([at for at, each in enumerate(text) if chr(each).isdigit() and at > 120])
            text[at:at + 1] = rng.choice((b"9", b"-1", b"0", b"1e30", b"7777777", b"&x;", b""))
        changed.write_bytes(text)
        told.append(reading.is_fine("predict", file, "--platform", changed))
    if not 0 < sum(told) < rounds:
        reading.runs.faults.append(f"of {rounds} changed platforms {sum(told)} are refused")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--fuzz", required=True)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(words.hiroba, folder)
        reading = Reading(runs)
        whole = runs.folder / "whole.hrec"
        record_small(runs)
        shutil.copy(runs.file, whole)
        fuzzed = subprocess.run([words.fuzz, whole, str(words.rounds), str(words.seed)], capture_output=True, text=True,
                                check=False)
        print(fuzzed.stdout, end="")
        if fuzzed.returncode != 0:
            shutil.copy(whole, "/tmp/broken_recording.hrec")
            runs.faults.append("a changed recording was not read as it should be: /tmp/broken_recording.hrec")
        content = whole.read_bytes()
        cut(reading, content)
        foreign(reading, content)
        killed(reading, random.Random(words.seed))
        if reading.predicts:
            platforms(reading, whole, random.Random(words.seed), 24)
    for fault in runs.faults:
        print(fault)
    sys.exit(1 if runs.faults else 0)


if __name__ == "__main__":
    main()
