#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Records small programs, each with one illness, and its cured twin (illnesses/illnesses.c), and holds
the report against them: the illness's name is the first advice, at the line whose comment names it;
the twin gets no such advice. Also that a recording changes no result, that a killed job's is read up
to there, that commands find a job that runs, and that recordings of several threads, over udp and with the other fault engine can be read.

Usage: report_runs.py --hiroba PATH [--only NAME] [--tries N]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).parent / "illnesses/illnesses.c"
# Of each program what `hiroba report` calls it.
ILLNESSES = {
    "false_sharing": "false sharing",
    "dealt_singly": "elements dealt singly",
    "first_touch": "serial first touch",
    "serial_use": "serial loop over what all wrote",
    "column_wise": "column-wise loop",
    "small_regions": "regions too small",
    "hot_lock": "hot lock",
    "unbalanced": "unbalanced loop",
    "shared_counter": "shared counter",
    "inner_reduction": "reduction in an inner loop",
    "constants_beside": "constants beside what changes",
    "needless_barrier": "barrier that nobody needs",
    "stack_arrays": "large arrays on the stack",
    "dynamic_again": "dynamic schedule over data that is used again",
    "crowded": "more threads than cores",
}
SECONDS = 120


def line_of(name):
    """Where the source says that the illness is."""
    for number, text in enumerate(SOURCE.read_text().splitlines(), 1):
        if text.endswith(f"// here: {name}"):
            return number
    return None


class Runs:
    """The program, its recordings, and what went wrong so far."""

    def __init__(self, hiroba, folder):
        self.hiroba, self.folder = hiroba, pathlib.Path(folder)
        self.program = self.folder / "illnesses"
        self.file = self.folder / "r.hrec"
        self.faults = []
        # What is looked for shows where regions are spread, whatever else the machine does.
        os.environ.setdefault("HIROBA_REGIONS", "spread")
        # What is judged by its times goes ahead of other work, where that is allowed.
        ahead = ["nice", "-n", "-10"]
        said = subprocess.run([*ahead, "true"], capture_output=True, check=False)
        self.ahead = ahead if said.returncode == 0 and not said.stderr else []
        subprocess.run(["gcc", "-g", "-O2", "-fopenmp", "-Wall", "-Wextra", "-Werror", SOURCE, "-o", self.program, "-lm"],
                       check=True)

    def command(self, *words, options=("-n", "2", "-t", "1"), record=True):
        recording = ["--record", self.file] if record else []
        return [self.hiroba, "run", *options, *recording, self.program, *words]

    def parts(self, nodes=2):
        """What the nodes of the next run record into, without what a killed run has left there."""
        parts = [pathlib.Path(f"{self.file}.{rank}") for rank in range(nodes)]
        for part in parts:
            part.unlink(missing_ok=True)
        return parts

    def run(self, *words, options=("-n", "2", "-t", "1"), record=True, before=(), **settings):
        """What the program printed."""
        done = subprocess.run([*before, *self.command(*words, options=options, record=record)], env={**os.environ, **settings},
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode != 0 or done.stderr:
            sys.exit(f"{words}: status {done.returncode}, said {done.stdout}{done.stderr}")
        return done.stdout

    def report(self, *words):
        done = subprocess.run([self.hiroba, "report", self.file, *words], capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        if done.returncode != 0:
            sys.exit(f"report {words}: status {done.returncode}, said {done.stderr}")
        return done.stdout

    def advice(self, name, form):
        """The program's result, its seconds, and what the report advises."""
        options = ["-n", "2", "-t", "1"]
        if name == "crowded" and form == "ill":
            options[3] = str(os.cpu_count())
        value, seconds = self.run(name, form, options=options, before=self.ahead).split()
        return value, float(seconds), json.loads(self.report("--json"))["advice"]


def wrong_in(runs, name):
    """What is wrong with the report of one illness, in one try; None: nothing."""
    said, _, found = runs.advice(name, "ill")
    bare = runs.run(name, "ill", record=False).split()[0]
    if name != "crowded" and said != bare:
        sys.exit(f"{name}: prints {said} when recorded, {bare} else")
    if not found or found[0]["illness"] != ILLNESSES[name]:
        return f"{name}: the first advice is {found[0] if found else None}"
    line = line_of(name)
    if line is not None and f"illnesses.c:{line} " not in found[0]["line"]:
        return f"{name}: is told at {found[0]['line']}, not at line {line}"
    _, _, cured = runs.advice(name, "cured")
    if any(each["illness"] == ILLNESSES[name] for each in cured):
        return f"{name}: the cured twin has it too: {cured}"
    return None


def told_apart(runs, only, tries):
    """Work on the machine beside a run may cost more than the illness: each has some tries, and one is enough."""
    for name in ILLNESSES if only is None else [only]:
        for _ in range(tries):
            wrong = wrong_in(runs, name)
            if wrong is None:
                break
        else:
            runs.faults.append(wrong)


def forms(runs):
    """Other ways to run it, and other forms of the report."""
    for options, settings in ((("-n", "3", "-t", "2"), {}), (("-n", "2", "-t", "1"), {"HIROBA_PROVIDER": "udp"}),
                              (("-n", "2", "-t", "1"), {"HIROBA_FAULT_ENGINE": "mprotect"}), (("-n", "1", "-t", "2"), {})):
        runs.run("column_wise", "ill", options=options, **settings)
        told = json.loads(runs.report("--json"))
        if told["status"] != 0 or told["regions"] != 9 or told["notes"]:
            runs.faults.append(f"{options} {settings}: {told['status']} {told['regions']} {told['notes']}")
        for thread in told["threads"]:
            times = sum(value for key, value in thread.items() if key.endswith("_ns") and key != "cpu_ns")
            if abs(times - told["wall_ns"]) > told["wall_ns"] / 100:
                runs.faults.append(f"{options} {settings}: a thread's times are {times} of {told['wall_ns']}")
    trace = runs.folder / "trace.json"
    runs.report("--perfetto", trace)
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    if not any("column_wise" in name for name in names):
        runs.faults.append(f"the trace has no region of column_wise: {sorted(names)[:20]}")
    if "Where the time went" not in runs.report():
        runs.faults.append("the page does not say where the time went")


def killed(runs):
    """A recording of a job that was killed has what there was of it."""
    first = runs.parts()[1]
    with subprocess.Popen(runs.command("needless_barrier", "endless"), stdout=subprocess.DEVNULL) as job:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and (not first.exists() or first.stat().st_blocks < 1000):
            time.sleep(0.01)
        job.send_signal(signal.SIGKILL)
    told = json.loads(runs.report("--json"))
    if not any("had not ended" in note for note in told["notes"]):
        runs.faults.append(f"a killed job's report does not say so: {told['notes']}")
    if not any("illnesses.c" in each["place"] for each in told["synchronizations"]):
        runs.faults.append(f"a killed job's report has no lines: {told['synchronizations'][:3]}")


def ask(runs, *words):
    """What a command says that looks at a job, asked in the folder where the job was started."""
    done = subprocess.run([runs.hiroba, *words], capture_output=True, text=True, timeout=SECONDS, check=False,
                          cwd=runs.folder)
    if done.returncode != 0 or done.stderr:
        runs.faults.append(f"{words}: status {done.returncode}, said {done.stderr}")
    return done.stdout


def attached(runs, job):
    """gdb is attached to the node that is asked for, with the signals of faults passed on."""
    def says(command):
        done = subprocess.run([runs.hiroba, "gdb", "1", "-e", command], capture_output=True, text=True, timeout=SECONDS,
                              check=False, cwd=runs.folder, stdin=subprocess.DEVNULL)
        return done.stdout + done.stderr
    if not re.search(r"SIGSEGV\s+No\s+No\s+Yes", said := says("info signals SIGSEGV")):
        runs.faults.append(f"hiroba gdb does not pass SIGSEGV on: {said}")
    found = re.search(r"process (\d+)\s.*illnesses", said := says("info inferiors"))
    if not found or b"HIROBA_JOB_RANK=0001\0" not in pathlib.Path(f"/proc/{found[1]}/environ").read_bytes():
        runs.faults.append(f"hiroba gdb 1 is attached to another process: {said}")
    for words, text in ((("7",), "has no node 7"), (("x",), "is no rank"), (("0", str(os.getpid())), "no process")):
        done = subprocess.run([runs.hiroba, "gdb", *words], capture_output=True, text=True, timeout=SECONDS, check=False,
                              cwd=runs.folder)
        if done.returncode != 64 or text not in done.stderr:
            runs.faults.append(f"hiroba gdb {words} beside {job}: {done}")


def live(runs):
    """Commands that look at a running job find it, by its number and by themselves."""
    parts = runs.parts(nodes=3)
    command = runs.command("needless_barrier", "endless", options=("-n", "3", "-t", "1"))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=runs.folder) as job:
        try:
            look(runs, job, parts)
        finally:
            job.kill()
    done = subprocess.run([runs.hiroba, "top", "--once", str(os.getpid())], capture_output=True, text=True, check=False)
    if done.returncode != 64 or "is no process of hiroba run" not in done.stderr:
        runs.faults.append(f"hiroba top of another process: {done}")


def look(runs, job, parts):
    """Asks the commands, once its nodes record."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and not all(part.exists() and part.stat().st_blocks >= 300 for part in parts):
        time.sleep(0.01)
    for words in ((), (str(job.pid),), (str(runs.file),)):
        rows = [line.split() for line in ask(runs, "top", "--once", *words).splitlines()]
        nodes = [row[0] for row in rows if len(row) > 6 and row[0].isdigit()]
        if nodes != ["0", "1", "2"] or not any("needless_barrier" in word for row in rows for word in row):
            runs.faults.append(f"hiroba top {words} shows {rows}")
    if shutil.which("gdb") is not None:
        attached(runs, job.pid)
    ask(runs, "stacks")
    told = ""
    is_told = lambda: all(f"rank {rank}, thread" in told for rank in range(3))
    while not runs.faults and not is_told() and (line := job.stderr.readline()):
        told += line
    if not is_told():
        runs.faults.append(f"hiroba stacks without a number says {told[-500:]}")


RACE = """#include <omp.h>
#include <stdlib.h>
int main(void) {
    long* shared = aligned_alloc(4096, 65536);  // line 4
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            shared[600] = 17;  // line 9
        else
            shared[600] = 4;  // line 11
    }
    return shared[600] == 0;
}
"""


def raced(runs):
    """A race of a recorded run is told with both lines, and that which allocated the memory."""
    source = runs.folder / "race.c"
    source.write_text(RACE)
    subprocess.run(["gcc", "-g", "-O0", "-fopenmp", source, "-o", runs.folder / "race"], check=True)
    for _ in range(4):  # A race may come out as an order.
        done = subprocess.run([runs.hiroba, "run", "-n", "2", "-t", "1", "--record", runs.file, runs.folder / "race"],
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        if "write-write race" in done.stderr:
            break
    told = [line for line in done.stderr.splitlines() if "is of writes by" in line]
    if len(told) != 1 or not re.search(r"node 0 at race\.c:9 .*node 1 at race\.c:11 .*65536 bytes allocated at race\.c:4 ", told[0]):
        runs.faults.append(f"a recorded race is told as {done.stderr}")


TEMPLATES = """#include <cstdio>
#include <vector>
int main() {
    std::vector<double> all(100000);  // line 4
    double sum = 0;
#pragma omp parallel for
    for (int i = 0; i < 100000; ++i) all[static_cast<std::size_t>(i)] = i;
    for (const double each : all) sum += each;
    std::printf("%.0f\\n", sum);
}
"""


def templates(runs):
    """What a header of the system does is told at the program's line that has it done, and by a short name."""
    source, program = runs.folder / "templates.cpp", runs.program
    source.write_text(TEMPLATES)
    subprocess.run(["g++", "-g", "-O2", "-fopenmp", source, "-o", runs.folder / "templates"], check=True)
    runs.program = runs.folder / "templates"
    runs.run()
    lines = [each["line"] for each in json.loads(runs.report("--json"))["variables"]]
    if "templates.cpp:4 (main)" not in lines:
        runs.faults.append(f"a vector made in line 4 is told at {lines}")
    runs.program = program


def progress(runs):
    """Lines say how often the program's step comes round, with and without a recording, and leave no file behind."""
    place = runs.folder / "temporary"  # of these runs alone
    place.mkdir()
    for record in (False, True):
        command = runs.command("needless_barrier", "long", options=("-n", "2", "-t", "1", "--progress", "0.2"), record=record)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False,
                              env={**os.environ, "TMPDIR": str(place)})
        told = re.findall(r"^hiroba: after \S+ m?s: region 1, comes round to barrier at illnesses\.c:(\d+) .* every \S+ [mu]s",
                          done.stderr, re.MULTILINE)
        if done.returncode != 0 or set(told) != {str(line_of("needless_barrier"))}:
            runs.faults.append(f"--progress says, recorded {record}: {done.returncode} {done.stderr[-800:]}")
    if left := os.listdir(place):
        runs.faults.append(f"--progress leaves {left} behind")
    for words, text in ((("--progress", "x"), "seconds"), (("--progress", "1", "--hosts", "a,b"), "one host")):
        done = subprocess.run([runs.hiroba, "run", "-n", "2", *words, runs.program], capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        if done.returncode != 64 or text not in done.stderr:
            runs.faults.append(f"hiroba run {words}: {done}")


def short_of_room(runs):
    """A small recording leaves out phases, and the report says so."""
    runs.run("needless_barrier", "long", HIROBA_RECORD_SIZE="1M", options=("-n", "2", "-t", "1"))
    told = json.loads(runs.report("--json"))
    if not any("one phase of many" in note for note in told["notes"]):
        runs.faults.append(f"what is left out is not told: {told['notes']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--only", choices=ILLNESSES)
    parser.add_argument("--tries", type=int, default=8)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(words.hiroba, folder)
        told_apart(runs, words.only, words.tries)
        if words.only is None:
            forms(runs)
            killed(runs)
            live(runs)
            progress(runs)
            raced(runs)
            templates(runs)
            short_of_room(runs)
    for fault in runs.faults:
        print(fault)
    sys.exit(1 if runs.faults else 0)


if __name__ == "__main__":
    main()
