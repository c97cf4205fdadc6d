#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Replays recordings with `hiroba predict` and holds the answers against what follows without SimGrid: time
grows evenly with latency, bytes with the wire's slowness, a barrier with the logarithm of the nodes; what-if
does what it says. What is no recording, wire or platform ends with one line and its status.

Status 77 where hiroba was built without SimGrid. --table measures programs beside their predictions
(docs/results/predicted.csv). Usage: predict_runs.py --hiroba PATH [--table PROGRAM ...]
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from report_runs import Runs

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-3" speed="2Gf" bw="BANDWIDTH" lat="5us" core="2"/>
</platform>
"""
NO_ROUTE = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <zone id="z" routing="Full"><host id="a" speed="1Gf"/><host id="b" speed="1Gf"/></zone>
</platform>
"""


def ask(hiroba, *words):
    return subprocess.run([hiroba, "predict", *words], capture_output=True, text=True, timeout=120, check=False)


class Answers:
    """Predictions of one recording."""

    def __init__(self, runs):
        self.runs = runs

    def of(self, *words, nodes="2"):
        done = ask(self.runs.hiroba, self.runs.file, "--json", "--nodes", nodes, *words)
        if done.returncode != 0 or done.stderr:
            sys.exit(f"predict {words}: status {done.returncode}, said {done.stderr}")
        return json.loads(done.stdout)

    def worst(self, *words, nodes="2"):
        """Nanoseconds, and the part of each limit in it."""
        told = self.of(*words, nodes=nodes)["predictions"][0]["worst"]
        return told["ns"], {name: part * told["ns"] for name, part in told["limits"].items()}

    def expect(self, holds, what):
        if not holds:
            self.runs.faults.append(what)


def wires(answers):
    """What a wire's latency and bandwidth come to, of a program whose nodes bring much."""
    times = [answers.worst("--wire", f"{us}us,1000GB/s,0us")[0] for us in (1000, 2000, 3000)]
    grew = [times[1] - times[0], times[2] - times[1]]
    answers.expect(grew[0] > 1e6 and abs(grew[1] / grew[0] - 1) < .02, f"time does not grow evenly with latency: {times}")
    halved = answers.worst("--wire", "3000us,1000GB/s,0us", "--what-if", "latency/3")[0]
    answers.expect(abs(halved / times[0] - 1) < .001, f"latency/3 of 3000 us is not 1000 us: {halved} {times[0]}")
    slow = [answers.worst("--wire", f"0us,{rate}GB/s,0us")[1]["bytes"] for rate in (.02, .01)]
    answers.expect(slow[0] > 1e6 and abs(slow[1] / slow[0] - 2) < .5, f"bytes on a wire half as fast: {slow}")
    busy = [answers.worst("--wire", f"0us,1000GB/s,{us}us")[1]["messages"] for us in (100, 200)]
    answers.expect(busy[0] > 1e6 and abs(busy[1] / busy[0] - 2) < .5, f"messages that take twice the time: {busy}")
    # How threads queue for a link or a core, and so who comes last, depends on both: about twice, then.
    # An exchange is two messages one behind the other, each with work at both ends.
    idle = answers.worst("--wire", "100us,1000GB/s,0us")[1]["latency"]
    answers.expect(1.5 < busy[0] / idle < 3.2, f"100 us a message take {busy[0]}, 100 us of latency {idle}")
    none = answers.worst("--wire", "0us,1000GB/s,0us")[0]
    fewer = answers.worst("--wire", "1000us,1000GB/s,0us", "--what-if", "misses/4")[0]
    answers.expect(none < times[0] and fewer < times[0] * .6, f"a quarter of the misses: {fewer} of {times[0]}")
    cured = answers.worst("--wire", "1000us,1000GB/s,0us", "--what-if", "no-false-sharing")[0]
    answers.expect(cured < times[0] * .9, f"without false sharing: {cured} of {times[0]}")
    told = answers.of("--wire", "10GbE", nodes="2,4")["predictions"]
    for each in told:
        parts = sum(each["worst"]["limits"].values())
        answers.expect(abs(parts - 1) < .001, f"limits do not add up: {parts}")
        answers.expect(0 < each["low_ns"] < each["high_ns"], f"no range: {each}")


def barriers(answers):
    """A tree of messages: up and down, as deep as the logarithm of the nodes. The latency in the answer at worst is
    a quarter more than asked for."""
    counts = answers.of("--wire", "10000us,1000GB/s,0us", nodes="2,4,16,64")["predictions"]
    spent = [each["worst"]["ns"] * each["worst"]["limits"]["meetings"] for each in counts]
    for deep, ns in zip((1, 2, 4, 6), spent):
        answers.expect(abs(ns / spent[0] / deep - 1) < .1, f"barriers of 2, 4, 16, 64 nodes: {spent}")
    # 8 regions or more with barriers in them, each 2 x 10 ms.
    answers.expect(spent[0] > 8 * 2 * 12.5e6, f"barriers take {spent[0]} ns")


def computing(answers):
    """A loop that needs no other node is shared out."""
    told = answers.of("--wire", "hdr-ib", nodes="2,4,8")
    alone = told["one_host_ns"]
    best = [each["best"]["ns"] for each in told["predictions"]]
    answers.expect(best[0] > 1.5 * best[1] > 2 * best[2] and alone < 3 * best[0], f"computing on 1, 2, 4, 8 nodes: {alone} {best}")
    twice = answers.of("--wire", "hdr-ib", "--what-if", "computing*2")["one_host_ns"]
    answers.expect(abs(twice / alone - 2) < .001, f"computing twice: {twice} of {alone}")


def platforms(answers):
    """SimGrid's own format: a slower network is slower; one of four hosts has no eight nodes."""
    folder = answers.runs.folder
    times = []
    for bandwidth in ("1.25GBps", "1MBps"):
        (folder / "good.xml").write_text(PLATFORM.replace("BANDWIDTH", bandwidth))
        times.append(answers.worst("--platform", folder / "good.xml")[0])
    answers.expect(times[1] > times[0] * 2, f"a platform a thousand times slower: {times}")


def refusals(answers):
    folder, file = answers.runs.folder, answers.runs.file
    (folder / "route.xml").write_text(NO_ROUTE)
    (folder / "junk.xml").write_bytes(os.urandom(3000))
    (folder / "cut.xml").write_text(PLATFORM[:150])
    (folder / "unit.xml").write_text(PLATFORM.replace("BANDWIDTH", "7parsec"))
    (folder / "cut.hrec").write_bytes(file.read_bytes()[:5000])
    rows = [((file, "--platform", folder / "good.xml", "--nodes", "8"), 78, "4 hosts"),
            ((file, "--platform", folder / "none.xml"), 78, "cannot be read"),
            ((folder / "cut.hrec",), 78, "recorded"), ((folder / "junk.xml",), 78, "no recording"),
            ((folder / "none",), 78, "no file"), ((file, "--wire", "3GbE"), 64, "hdr-ib"),
            ((file, "--nodes", "2,x"), 64, "numbers from 1"), ((file, "--what-if", "sun*2"), 64, "latency"), ((), 64, "file")]
    rows += [((file, "--platform", folder / f"{name}.xml"), 78, "platform") for name in ("route", "junk", "cut", "unit")]
    for words, status, text in rows:
        done = ask(answers.runs.hiroba, *words)
        lines = done.stderr.splitlines()
        answers.expect(done.returncode == status and len(lines) == 1 and text in lines[0] and not done.stdout,
                       f"{words}: status {done.returncode}, said {done.stderr}")
    bare = folder / "bare"
    bare.mkdir()
    shutil.copy(answers.runs.hiroba, bare / "hiroba")
    done = ask(bare / "hiroba", file)
    answers.expect(done.returncode == 78 and "libsimgrid-dev" in done.stderr, f"without hiroba-predict: {done}")
    (bare / "hiroba-predict").write_text("#!/bin/sh\nexit 127\n")
    (bare / "hiroba-predict").chmod(0o755)
    done = ask(bare / "hiroba", file)
    answers.expect(done.returncode == 78 and "does not start" in done.stderr, f"with one that does not start: {done}")


def of_recording(answers, program, part, tries=3):
    """What `part` expects of a recording of `program`. Work on the machine beside the run is in the recording: it has
    some tries."""
    runs = answers.runs
    before = list(runs.faults)
    for _ in range(tries):
        runs.faults = list(before)
        runs.run(*program)
        part(answers)
        if runs.faults == before:
            break


TABLE_RUNS = 4


def rows_of(runs, words):
    """For 2 and 4 nodes: the least time of some runs, and the prediction by the recording of two nodes that was disturbed
    least."""
    runs.program = words[0]
    least, kept = {}, runs.folder / "least.hrec"
    for nodes in (2, 4):
        for _ in range(TABLE_RUNS):
            runs.run(*words[1:], options=("-n", str(nodes), "-t", "1"))
            took = Answers(runs).of("--wire", "shm")["recorded_ns"]
            if nodes == 2 and took < least.get(2, took + 1):
                runs.file.replace(kept)
            least[nodes] = min(took, least.get(nodes, took))
    kept.replace(runs.file)
    for nodes, measured in least.items():
        told = Answers(runs).of("--wire", "shm", nodes=str(nodes))["predictions"][0]
        yield nodes, measured / 1e6, *(told[way]["ns"] / 1e6 for way in ("best", "worst"))


def table(runs, programs):
    for program in programs:
        for nodes, measured, low, high in rows_of(runs, program.split()):
            print(f'"{pathlib.Path(program).name}",{nodes},{measured:.1f},{low:.1f},{high:.1f},'
                  f"{(low + high) / 2 / measured:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--table", nargs="+")
    words = parser.parse_args()
    if not (pathlib.Path(words.hiroba).parent / "hiroba-predict").exists():
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(words.hiroba, folder)
        if words.table:
            table(runs, words.table)
            return
        answers = Answers(runs)
        of_recording(answers, ("unbalanced", "cured"), computing)
        of_recording(answers, ("needless_barrier", "ill"), barriers)
        of_recording(answers, ("column_wise", "ill"), wires)
        platforms(answers)
        refusals(answers)
    for fault in runs.faults:
        print(fault)
    sys.exit(1 if runs.faults else 0)


if __name__ == "__main__":
    main()
