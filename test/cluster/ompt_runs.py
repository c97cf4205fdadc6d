#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program with a first-party tool (OMPT) on one and several nodes, and checks what each node's tool heard.

    ompt_runs.py --hiroba build/bin/hiroba [--smoke]

The tool (programs/ompt_tool.c) is compiled against the omp-tools.h that clang brings, so that layouts and numbers are
somebody else's. Without clang there is nothing to run: status 77.
"""
import argparse
import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from clean_environment import clean_environment

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
LIMIT_SECONDS = 120
# ompt_callbacks_t
THREAD_BEGIN, THREAD_END, PARALLEL_BEGIN, PARALLEL_END, TASK_CREATE, TASK_SCHEDULE, IMPLICIT_TASK = range(1, 8)
SYNC_WAIT, RELEASED, DEPENDENCES, TASK_DEPENDENCE, WORK, MASKED, SYNC = 16, 17, 18, 19, 20, 21, 23
TARGET, ERROR = 33, 37
LOCK_INIT, LOCK_DESTROY, ACQUIRE, ACQUIRED, NEST_LOCK, FLUSH, CANCEL, REDUCTION, DISPATCH = 24, 25, 26, 27, 28, 29, 30, 31, 32
SCOPED = (IMPLICIT_TASK, SYNC_WAIT, WORK, MASKED, SYNC, NEST_LOCK, REDUCTION, TARGET)
# What the program does on every node, and what clang's code alone tells of.
EVERYWHERE = (THREAD_BEGIN, PARALLEL_BEGIN, TASK_CREATE, TASK_SCHEDULE, IMPLICIT_TASK, SYNC_WAIT, SYNC, WORK, ACQUIRED)
ON_NODE_0 = (DEPENDENCES, LOCK_INIT, LOCK_DESTROY, NEST_LOCK, CANCEL, DISPATCH)
BY_CLANG = (MASKED, FLUSH, REDUCTION)
# Of ompt_targets.c, by ompt_target_t: regions, data entered, left and updated; regions and data with nowait.
TARGETS = {1: 3, 2: 2, 3: 2, 4: 1, 9: 8, 10: 1}
TARGETS_ANSWER = "targets 3 503 503 499500\n"
TASKS_EXECUTED = 134  # of the program: each once, wherever


class Heard:
    """What one process's tool has written."""

    def __init__(self, path):
        self.events = collections.defaultdict(lambda: (0, 0, 0))
        self.ids, self.faults, self.whole, self.targets = [], [], False, {}
        for line in path.read_text().splitlines():
            word, _, rest = line.partition(" ")
            if word == "event":
                number, plain, begin, end = map(int, rest.split())
                self.events[number] = (plain, begin, end)
            elif word == "id":
                self.ids.append(int(rest, 16))
            elif word == "fault":
                self.faults.append(rest)
            elif word == "target":
                kind, count = map(int, rest.split())
                self.targets[kind] = count
            elif word == "tasks":
                self.created, self.done, self.executed = map(int, rest.split())
            elif word == "threads_alive":
                self.alive = int(rest)
            elif word == "codes":
                self.codes = int(rest)
            self.whole = word == "end"

    def count(self, event):
        return sum(self.events[event])

    def wrong(self):
        wrong = list(self.faults)
        if not self.whole:
            wrong.append("the tool's file is not whole")
        for event in SCOPED:
            if self.events[event][1] != self.events[event][2]:
                wrong.append(f"event {event}: {self.events[event][1]} begin, {self.events[event][2]} end")
        for one, other in ((THREAD_BEGIN, THREAD_END), (PARALLEL_BEGIN, PARALLEL_END), (ACQUIRED, RELEASED),
                           (LOCK_INIT, LOCK_DESTROY)):
            if self.count(one) != self.count(other):
                wrong.append(f"events {one} and {other}: {self.count(one)} and {self.count(other)}")
        if self.count(ACQUIRE) < self.count(ACQUIRED):
            wrong.append("mutexes were acquired that nobody wanted")
        if self.alive != 0:
            wrong.append(f"{self.alive} threads have not ended")
        if self.created != self.done:
            wrong.append(f"{self.created} tasks created, {self.done} ended")
        return wrong


def build(directory):
    built = {"bare": {}}
    tool, own = directory / "libtool.so", directory / "libown_tool.so"
    for library in (tool, own):
        subprocess.run(["clang", "-O2", "-shared", "-fPIC", str(PROGRAMS / "ompt_tool.c"), "-o", str(library)], check=True)
    program = str(PROGRAMS / "ompt_events.c")
    for name, command in (("gcc", ["gcc"]), ("clang", ["clang"])):
        built[name] = directory / f"events_{name}"
        subprocess.run(command + ["-O2", "-fopenmp", program, "-o", str(built[name])], check=True)
    built["own"] = directory / "events_own"
    subprocess.run(["gcc", "-O2", "-fopenmp", program, "-o", str(built["own"]), "-Wl,--no-as-needed", str(own),
                    f"-Wl,-rpath,{directory}"], check=True)
    built["targets"] = directory / "targets"
    subprocess.run(["gcc", "-O2", "-fopenmp", "-foffload=disable", str(PROGRAMS / "ompt_targets.c"), "-o", str(built["targets"])],
                   check=True)
    built["left"] = directory / "left"
    subprocess.run(["gcc", "-O2", "-fopenmp", str(PROGRAMS / "status.c"), "-o", str(built["left"])], check=True)
    built["tool"] = tool
    return built


def run(command, environment):
    clean = clean_environment("OMP_", "OMPT_", "LD_")
    try:
        done = subprocess.run(command, env=clean | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT_SECONDS, text=True)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return None, "", f"did not end within {LIMIT_SECONDS} s"


class Runs:
    def __init__(self, hiroba, directory):
        self.hiroba, self.directory, self.built = hiroba, directory, build(directory)
        self.failed = self.number = 0
        # The program's answer; no bare runtime here has a tool.
        _, self.truth, _ = run([str(self.built["gcc"])], {"OMP_NUM_THREADS": "2", "OMP_CANCELLATION": "true"})

    def hear(self, program, nodes, threads, more, truth=None):
        truth = truth or self.truth
        self.number += 1
        out = self.directory / f"heard{self.number}"
        environment = {"OMP_CANCELLATION": "true", "OMP_NUM_THREADS": str(nodes * threads), "OMPT_TOOL_OUT": str(out),
                       "OMP_TOOL_LIBRARIES": str(self.built["tool"])} | more
        status, stdout, stderr = run([self.hiroba, "run", "-n", str(nodes), "--threads", str(threads), "--",
                                      str(self.built[program])], environment)
        wrong = []
        if status != 0 or stdout != truth:
            wrong.append(f"status {status}, output {stdout!r} instead of {truth!r}: {stderr[-600:]}")
        heard = [Heard(path) for path in sorted(self.directory.glob(out.name + ".*"))]
        return wrong, heard, stderr

    def say(self, name, wrong):
        print(f"FAIL {name}: {'; '.join(wrong[:8])}" if wrong else f"ok   {name}", flush=True)
        self.failed += bool(wrong)

    def check(self, program, nodes, threads, more=None):
        wrong, heard, _ = self.hear(program, nodes, threads, more or {})
        name = f"{program}, {nodes} nodes of {threads} {more or ''}"
        if len(heard) != nodes:
            wrong.append(f"{len(heard)} nodes have finalized their tools")
        for node, each in enumerate(heard):
            wrong += [f"process {node}: {text}" for text in each.wrong()]
            wrong += [f"process {node} heard no event {event}" for event in EVERYWHERE if each.count(event) == 0]
        ids = [number for each in heard for number in each.ids]
        if len(set(ids)) != len(ids):
            wrong.append(f"{len(ids) - len(set(ids))} ids were given twice")
        everything = ON_NODE_0 + (BY_CLANG if program == "clang" else ())
        wrong += [f"nobody heard event {event}" for event in everything if sum(h.count(event) for h in heard) == 0]
        if not wrong and sum(h.executed for h in heard) != TASKS_EXECUTED:
            wrong.append(f"{[h.executed for h in heard]} tasks executed, {TASKS_EXECUTED} in all")
        if not wrong and max(h.codes for h in heard) == 0:
            wrong.append("no event has a code address")
        self.say(name, wrong)

    def check_targets(self, nodes, threads):
        """Each target construct once, wherever it was executed; what waits for what; the line of an `error` construct."""
        wrong, heard, stderr = self.hear("targets", nodes, threads, {}, TARGETS_ANSWER)
        wrong += [text for each in heard for text in each.wrong()]
        told = collections.Counter()
        for each in heard:
            told.update(each.targets)
        if dict(told) != TARGETS:
            wrong.append(f"targets by kind {dict(told)}, not {TARGETS}")
        if sum(each.count(ERROR) for each in heard) != 1 or "warning: mild" not in stderr:
            wrong.append(f"the error construct: {[each.count(ERROR) for each in heard]}, {stderr!r}")
        # A chain of tasks of a millisecond: all but the first wait, unless their maker is held up.
        waits = sum(each.count(TASK_DEPENDENCE) for each in heard)
        if not 1 <= waits <= 10:
            wrong.append(f"{waits} dependences between tasks")
        self.say(f"targets, {nodes} nodes of {threads}: {waits} dependences", wrong)

    def check_own(self, nodes):
        """A tool that is the program's: one state for the job, finalized once."""
        wrong, heard, _ = self.hear("own", nodes, 1, {"OMP_TOOL_LIBRARIES": ""})
        if len(heard) != 1 or not heard[0].whole:
            wrong.append(f"{len(heard)} processes have finalized it")
        for each in heard:
            wrong += each.faults
            if len(set(each.ids)) != len(each.ids):
                wrong.append("ids were given twice")
            if nodes > 1 and len({number >> 48 for number in each.ids}) != nodes:
                wrong.append("not every node has told it anything")
            if each.executed != TASKS_EXECUTED:
                wrong.append(f"{each.executed} tasks executed")
        self.say(f"a tool of the program's, {nodes} nodes", wrong)

    def check_left(self, nodes):
        """A program that leaves inside a region: node 0's tool is finalized, without waiting for anybody."""
        began = time.monotonic()
        self.number += 1
        out = self.directory / f"heard{self.number}"
        status, _, stderr = run([self.hiroba, "run", "-n", str(nodes), "--threads", "2", "--", str(self.built["left"]), "exit",
                                 "region", "3"], {"OMPT_TOOL_OUT": str(out), "OMP_TOOL_LIBRARIES": str(self.built["tool"])})
        heard = [Heard(path) for path in self.directory.glob(out.name + ".*")]
        wrong = [] if status == 3 else [f"status {status}: {stderr[-300:]}"]
        if len(heard) != 1 or not heard[0].whole or heard[0].faults:
            wrong.append(f"{len(heard)} tools finalized, {[each.faults for each in heard]}")
        print(f"     {time.monotonic() - began:.2f} s")
        self.say(f"left inside a region, {nodes} nodes", wrong)

    def check_none(self, name, more, line=""):
        wrong, heard, stderr = self.hear("gcc", 2, 1, more)
        if heard:
            wrong.append(f"{len(heard)} processes had a tool")
        if line not in stderr or (not line and stderr):
            wrong.append(f"standard error {stderr!r}, no line {line!r}")
        self.say(name, wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if shutil.which("clang") is None:
        print("there is no clang here, and no omp-tools.h")
        return 77
    with tempfile.TemporaryDirectory(prefix="ompt") as directory:
        runs = Runs(str(pathlib.Path(options.hiroba).resolve()), pathlib.Path(directory))
        for program in ("gcc", "clang"):
            runs.check(program, 2, 1)
            runs.check(program, 4, 1)
            if options.smoke:
                continue
            runs.check(program, 1, 2)
            runs.check(program, 2, 2)
            runs.check(program, 2, 1, {"HIROBA_FAULT_ENGINE": "mprotect"})
            runs.check(program, 2, 1, {"HIROBA_PROVIDER": "udp"})
        for nodes, threads in ((1, 2), (2, 1), (4, 1)):
            runs.check_targets(nodes, threads)
        runs.check_own(1)
        runs.check_own(4)
        runs.check_left(1)
        runs.check_left(2)
        tool = str(runs.built["tool"])
        runs.check_none("OMP_TOOL=disabled", {"OMP_TOOL": "disabled"})
        runs.check_none("a tool that declines", {"OMPT_TOOL_DECLINES": "1"})
        runs.check_none("no ompt_start_tool that answers", {"OMPT_TOOL_NULL": "1"})
        runs.check_none("no such library", {"OMP_TOOL_LIBRARIES": "/nowhere/libtool.so"},
                        "OMP_TOOL_LIBRARIES: /nowhere/libtool.so: cannot open")
        runs.check_none("told of", {"OMP_TOOL_VERBOSE_INIT": "stderr", "OMPT_TOOL_NULL": "1"},
                        f"OMP_TOOL node 1: {tool}: ompt_start_tool returned NULL")
        runs.check("gcc", 2, 1, {"OMP_TOOL_LIBRARIES": "/nowhere/libtool.so:" + tool})
        runs.check("gcc", 2, 1, {"OMP_TOOL": "maybe"})
        print(f"{runs.failed} failed")
    return 1 if runs.failed else 0


if __name__ == "__main__":
    sys.exit(main())
