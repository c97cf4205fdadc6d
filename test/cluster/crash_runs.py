#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is printed when a program crashes: which thread, by what, what lies there, and its stack.

Each way to crash (programs/crashes.c), on each engine: status, the line, the frames.

    crash_runs.py --hiroba build/bin/hiroba [--only ways] [--nodes 2]
"""
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from kill_runs import children  # noqa: E402
from process_runs import main  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent / "programs" / "crashes.c"
ENGINES = ("uffd", "mprotect")
HEAD = r"^hiroba: rank (\d+) \(host (\S+)\), thread (\d+): (.*), at (.*?)(?:, in its call of (.*))?\.$"
LOOK_SECONDS = 2  # a node waits that long for its launcher


def build(bench):
    target = bench.folder / "crashes"
    subprocess.run(["gcc", "-g", "-O1", "-fopenmp", "-Wall", "-Wextra", str(SOURCE), "-o", str(target)],
                   check=True)
    return target


def line_of(text):
    """The number of the source's line that holds `text`."""
    return next(i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)


def reports(err):
    return re.findall(HEAD, err, re.MULTILINE)


def frames(err):
    """Functions and lines of the frames, innermost first."""
    return re.findall(r"^  #\d+ +0x[0-9a-f]{12} (.*)$", err, re.MULTILINE)


# How, the signal, what is said of it, where; "" is what the crash's own line has.
NOWHERE = r"\(nothing is mapped there\)"
WAYS = [
    ("null", signal.SIGSEGV, r"SIGSEGV: write of 0x8 " + NOWHERE, '"null"'),
    ("wild", signal.SIGSEGV, r"SIGSEGV: read of 0x210000000000 " + NOWHERE, '"wild"'),
    ("constant", signal.SIGSEGV, r"SIGSEGV: write of 0x[0-9a-f]+ \(table\+12 in crashes, crashes.c:\d+\)",
     '"constant"'),
    ("heap", signal.SIGSEGV, r"SIGSEGV: execution of 0x[0-9a-f]+ \(heap, freed or not known\)", '"heap"'),
    ("stack", signal.SIGSEGV, r"SIGSEGV: execution of 0x[0-9a-f]+ \(the stack of thread 0 of node {rank}\)",
     '"stack"'),
    ("code", signal.SIGSEGV, r"SIGSEGV: write of 0x[0-9a-f]+ \(code, crashes\.c:\d+ \(deep_thread\)\)", '"code"'),
    ("nonsense", signal.SIGSEGV, "SIGSEGV: access to an address that no memory can have", '"nonsense"'),
    ("jump", signal.SIGSEGV, r"SIGSEGV: execution of 0x10 " + NOWHERE, '"jump"'),
    ("abort", signal.SIGABRT, "SIGABRT", '"abort"'),
    ("divide", signal.SIGFPE, r"SIGFPE \(integer division by zero\)", '"divide"'),
    ("illegal", signal.SIGILL, "SIGILL", '"illegal"'),
    ("raise", signal.SIGSEGV, r"SIGSEGV \(sent by the program itself\)", '"raise"'),
    ("library", signal.SIGSEGV, r"SIGSEGV: read of 0x18 " + NOWHERE, '"library"'),
    ("atomic", signal.SIGSEGV, r"SIGSEGV: write of 0x10 " + NOWHERE, '"atomic"'),
    ("deep", signal.SIGSEGV, r"SIGSEGV: write of 0x[0-9a-f]+ \(the guard below the stack of thread 0 of node {rank}\)",
     None),
    ("thread", signal.SIGSEGV,
     r"SIGSEGV: write of 0x[0-9a-f]+ \(the guard below the stack of a thread that the program made\)", None),
]


def check_way(run, rank, number, cause, text):
    """`run` crashed by `cause` on the line with `text`, or in deep(), and told it."""
    status, out, err = run
    assert (status, out) == (128 + number, ""), f"status {status}, {out!r}: {err[-400:]}"
    told = reports(err)
    assert len(told) == 1, f"{len(told)} reports: {err[-600:]}"
    got_rank, _, _, got_cause, got_place, called = told[0]
    assert got_rank == str(rank) and re.fullmatch(cause.format(rank=rank), got_cause), told
    stack = frames(err)
    assert called == "" or (stack[0] != got_place and called in stack), told
    if text is None:
        assert re.fullmatch(r"crashes\.c:\d+ \(deep\)", got_place), told
        assert len(stack) == 32 and len([f for f in stack if "(deep)" in f]) > 28, err[-600:]
        return
    assert got_place == f"crashes.c:{line_of(text)} (crash)", told
    assert got_place in stack, err
    region = [f for f in stack if re.fullmatch(r"crashes\.c:\d+ \(main\._omp_fn\.0\)", f)]
    assert len(region) == 1 and stack.index(region[0]) == stack.index(got_place) + 1, err
    assert "libhiroba" not in stack[0], err
    assert rank != 0 or any(f.endswith("(main)") for f in stack), err


def ways(bench):
    """Each way to crash, on each engine and each of two nodes."""
    program = build(bench)
    for engine in ENGINES:
        for how, number, cause, text in WAYS:
            for rank in (0, 1) if how in ("null", "wild", "abort", "divide", "deep") else (1,):
                try:
                    check_way(bench.run(program, how, str(rank), HIROBA_FAULT_ENGINE=engine), rank, number,
                              cause, text)
                except AssertionError as wrong:
                    raise AssertionError(f"{how} on rank {rank}, {engine}: {wrong}") from None


def library_of_others(bench):
    """A library of another compiler, with lines and without: what was called is named."""
    source = "volatile int zero; int d(int x) { return x / zero; }"  # `d`: to a demangler, "double"
    program = """
        int d(int x);
        int main(void) {
            int sum = 0;
        #pragma omp parallel reduction(+ : sum)
            if (omp_get_thread_num() == 1) sum += d(3);
            return sum;
        }"""
    for compiler, flag, at in (("gcc", "-g", r"inner\.c:1 \(d\)"), ("gcc", "-g0", None),
                               ("clang", "-g", r"inner\.c:1 \(d\)")):
        if shutil.which(compiler) is None:
            continue
        (bench.folder / "inner.c").write_text(source)
        subprocess.run([compiler, flag, "-O1", "-shared", "-fPIC", "inner.c", "-o", "libinner.so"],
                       check=True, cwd=bench.folder)
        done = bench.run(bench.build("calls", program, "-fopenmp", "-L.", "-linner"))
        told = reports(done[2])
        assert done[0] == 128 + signal.SIGFPE and len(told) == 1, done
        place, called = told[0][4:]
        if at:
            assert re.fullmatch(at, place) and not called, f"{compiler} {flag}: {told}"
        else:
            assert place.endswith("(main._omp_fn.0)") and called.endswith(" in libinner.so"), told


def handled(bench):
    """A program that handles the signal is told nothing about, and sees its own actions."""
    program = build(bench)
    for engine in ENGINES:
        for how, number in (("null", 11), ("abort", 6), ("divide", 8), ("illegal", 4)):
            for rank in ("0", "1"):
                status, out, err = bench.run(program, f"handled-{how}", rank, HIROBA_FAULT_ENGINE=engine)
                assert (status, err) == (0, ""), f"{how}: status {status}, {err}"
                # A handler sets a variable of the node that ran it, which a region releases.
                assert out == f"caught {number}\n", f"{how} on {rank}: {out!r}"
        bare = subprocess.run([program, "seen"], capture_output=True, text=True, check=True).stdout
        assert bench.run(program, "seen", HIROBA_FAULT_ENGINE=engine)[:2] == (0, bare), bare


def sent(bench):
    """What others send is no crash of the program: the line that names the signal is all."""
    status, _, err = bench.run(build(bench), "killed", "1")
    assert status == 128 + signal.SIGABRT and not reports(err) and "signal 6" in err, err


def all_crash(bench):
    """Of threads that crash at once the first has its stack printed; of each other node a line."""
    program = build(bench)
    for _ in range(5):
        status, _, err = bench.run(program, "abort", "-1")
        assert status == 128 + signal.SIGABRT, err
        told = reports(err)
        lines = len(re.findall(r"^  #0 ", err, re.MULTILINE))
        assert 1 <= len(told) <= bench.nodes and lines == 1, err
        assert len({rank for rank, *_ in told}) == len(told), err


def deaf_launcher(bench):
    """A launcher that does not listen delays the end, and keeps nobody from it."""
    program = build(bench)
    job = subprocess.Popen(bench.command(program, "later", "1"), stdin=subprocess.PIPE, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert job.stdout.readline() == "ready\n"
        nodes = children(job.pid)
        job.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        job.stdin.close()
        state = lambda pid: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0]  # noqa: E731
        while not any(state(pid) == "Z" for pid in nodes):
            assert time.monotonic() - start < 30 * LOOK_SECONDS, "no node has ended"
            time.sleep(0.02)
        assert time.monotonic() - start > 0.9 * LOOK_SECONDS, "the node did not wait"
        job.send_signal(signal.SIGCONT)
        assert job.wait(timeout=100) == 128 + signal.SIGSEGV
    finally:
        job.kill()
        job.wait()


CASES = [ways, library_of_others, handled, sent, all_crash, deaf_launcher]


if __name__ == "__main__":
    sys.exit(main(CASES))
