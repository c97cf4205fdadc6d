#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hiroba check` against what runs make of the same programs: counts, private libraries, endings.

    check_runs.py --hiroba build/bin/hiroba [--only atomics]
"""
import json
import os
import re
import shutil
import subprocess
import sys

from clean_environment import clean_environment
from process_runs import HEADERS, LIMIT_SECONDS, main

LINES_ABOVE = HEADERS.count("\n")  # of the program's own text


def check(bench, program, *words, **variables):
    environment = clean_environment("LD_")
    done = subprocess.run([bench.hiroba, "check", *words, str(program)],
                          env=environment | {"LD_LIBRARY_PATH": str(bench.folder)} | variables,
                          text=True, capture_output=True, cwd=bench.folder, timeout=LIMIT_SECONDS)
    return done.returncode, done.stdout, done.stderr


def facts(bench, program):
    status, out, err = check(bench, program, "--json")
    found = json.loads(out)
    assert found["would_run"] == (status == 0), f"status {status}: {err}"
    return status, found


def findings(found):
    return {(one["name"], one["outcome"]): one["places"]
            for each in found["objects"] for one in each["findings"]}


MIXED = """
    extern int plugged(int*);
    int counter; long wide; unsigned char small; static int lock; __thread int own;
    int main(void) {
        int sum = 0;
    #pragma omp parallel reduction(+ : sum)
        {
            __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
            __atomic_or_fetch(&wide, 8, __ATOMIC_SEQ_CST);
            __sync_bool_compare_and_swap(&small, 0, 1);
            while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE));
            __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
            __atomic_fetch_add(&own, 1, __ATOMIC_SEQ_CST);
            __sync_synchronize();
            sum += plugged(&counter) > 0;
        }
        printf("%d\\n", sum);
        return 0;
    }"""


def atomics_are_those_that_a_run_rewrites(bench):
    bench.build("libplug.so", "int plugged(int* at) { return __sync_add_and_fetch(at, 2) + "
                "__sync_val_compare_and_swap(at, -1, 5); }", "-shared", "-fPIC")
    for flags in ([], ["-no-pie"], ["-O3", "-fno-plt"]):
        program = bench.build("mixed", MIXED, "-fopenmp", "-L.", "-lplug", *flags)
        status, found = facts(bench, program)
        assert status == 0, found
        run_status, out, told = bench.run(program, HIROBA_LOG="omp=debug")
        assert (run_status, out) == (0, f"{bench.nodes}\n"), told[-400:]
        rows = re.findall(r"\[0@.*omp debug: (\S+): (\d+) atomics and (\d+) flushes, \d+ by jump, "
                          r"(\d+) by trap, (\d+) left alone", told)
        assert len(rows) == 2, told[-600:]
        for path, atomics, flushes, traps, left in rows:
            (each,) = [one for one in found["objects"]
                       if os.path.realpath(one["path"]) == os.path.realpath(path)]
            told_numbers = [int(atomics), int(flushes), int(left)]
            assert told_numbers == [each["atomics"], each["flushes"], each["left_alone"]], (each, path)
            assert each["traps"] <= int(traps), each
    assert sum(one["left_alone"] for one in found["objects"]) > 0, "the thread-local one"


def libraries_are_private_as_in_a_run(bench):
    # Called like the system's, but the user's.
    bench.build("libunwind.so", "int borrowed = 3;", "-shared", "-fPIC")
    program = bench.build("borrows", """
        #include <math.h>
        extern int borrowed;
        int main(int n, char** words) {
        #pragma omp parallel
            if (sin(n) > .9) borrowed++;
            return 0; }""", "-fopenmp", "-L.", "-lunwind", "-lm")
    status, found = facts(bench, program)
    assert status == 0 and found["runtimes"] == ["libgomp.so.1"], found
    kept = {os.path.realpath(one["path"]) for one in found["objects"] if one["private"]}
    _, _, told = bench.run(program, HIROBA_LOG="info")
    private = {os.path.realpath(path) for path in
               re.findall(r"(\S+) is the system's: its state is each node's own", told)}
    assert kept and kept <= private, (kept, private)
    shared = [one["path"] for one in found["objects"] if not one["private"]]
    assert any(path.endswith("/libunwind.so") for path in shared), shared
    assert not any(os.path.realpath(path) in private for path in shared), (shared, private)


ENDINGS = """
    extern void acc_prof_register(void);
    static int child(void) {
        return fork();
    }
    int main(int count, char** words) {
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        if (count > 5) pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        if (count > 4) return child();
        %s
        return 0;
    }"""


def endings_are_named_with_their_lines(bench):
    for flags in ([], ["-fno-plt"], ["-no-pie"]):
        program = bench.build("ends", ENDINGS % "if (count > 3) acc_prof_register();", *flags,
                              "-fopenmp", "-fno-inline", "-O0")
        status, found = facts(bench, program)
        assert status == 78, found
        named = findings(found)
        line = lambda number, function: [f"<stdin>:{LINES_ABOVE + number} ({function})"]
        assert named[("fork", "fails")] == line(4, "child"), named
        assert named[("pthread_mutexattr_setrobust", "may not work")] == line(9, "main"), named
        assert named[("acc_prof_register", "ends the run")] == line(11, "main"), named
        # And a run that gets there ends so.
        done, _, told = bench.run(program, "a", "b", "c")
        assert done == 78 and "acc_prof_register" in told, told
    program = bench.build("lives", ENDINGS % "", "-fopenmp", "-O0")
    status, found = facts(bench, program)
    assert status == 0 and ("fork", "fails") in findings(found), found


def what_cannot_be_taken_over_has_its_line(bench):
    script = bench.folder / "script"
    script.write_text("#!/bin/sh\necho\n")
    script.chmod(0o755)
    static = bench.build("static", "int main(void) { return 0; }", "-static")
    safe = bench.build("safe", "__thread void *__safestack_unsafe_stack_ptr; int main(void) { return 0; }",
                       "-rdynamic")
    for program, wanted, line in ((script, 78, "it is a script for /bin/sh"),
                                  (static, 78, "statically linked"),
                                  (safe, 78, "-fsanitize=safe-stack"),
                                  (bench.folder / "nothing", 64, "No such file")):
        status, out, err = check(bench, program)
        assert status == wanted and len(err.splitlines()) == 1 and line in err, (status, err)
    bench.build("libgone.so", "int gone;", "-shared", "-fPIC")
    program = bench.build("lacks", "extern int gone; int main(void) { return gone; }", "-L.", "-lgone")
    assert check(bench, program)[0] == 0
    (bench.folder / "libgone.so").unlink()
    status, found = facts(bench, program)
    assert status == 78 and found["missing"] == ["libgone.so"], found
    # A runtime inside a library is a second one.
    bench.build("libsecond.so", "void __kmpc_fork_call(void) {} int other;", "-shared", "-fPIC")
    program = bench.build("second", "extern int other; int main(void) { return other; }", "-fopenmp",
                          "-L.", "-lsecond")
    status, found = facts(bench, program)
    assert status == 78 and ("__kmpc_fork_call", "ends the run") in findings(found), found


def entry_points_of_newer_compilers_are_named(bench):
    # A stand-in for a runtime that has more than hiroba knows, and a library of the program's that has another such name.
    bench.build("libgomp_tomorrow.so", "void GOMP_tomorrow(void) {} void omp_set_tomorrow(void) {} void omp_own(void) {}",
                "-shared", "-fPIC", "-Wl,-soname,libgomp.so.1")
    bench.build("libown.so", "void omp_own(void) {}", "-shared", "-fPIC")
    text = """
        extern void GOMP_tomorrow(void), omp_own(void), GOMP_perhaps(void) __attribute__((weak));
        int main(int count, char** words) {
            if (count > 1) %s
            if (GOMP_perhaps) GOMP_perhaps();
            omp_own();
            return 0; }"""
    program = bench.build("new", text % "GOMP_tomorrow();", "-O0", "-fopenmp", "-L.", "-lown", "-l:libgomp_tomorrow.so")
    status, found = facts(bench, program)
    assert status == 78, found
    assert list(findings(found)) == [("GOMP_tomorrow", "ends the run")], found
    assert findings(found)[("GOMP_tomorrow", "ends the run")] == [f"<stdin>:{LINES_ABOVE + 4} (main)"], found
    done, _, told = bench.run(program)
    assert done == 78 and len(told.splitlines()) == 1 and "it asks for GOMP_tomorrow, which this" in told, (done, told)
    # Under a version node that the loader does not find.
    (bench.folder / "nodes").write_text("GOMP_9.0 { global: GOMP_tomorrow; };\n")
    bench.build("libgomp_versions.so", "void GOMP_tomorrow(void) {}", "-shared", "-fPIC", "-Wl,-soname,libgomp.so.1",
                "-Wl,--version-script=nodes")
    versions = bench.build("versions", "extern void GOMP_tomorrow(void); int main(int n, char** w) { if (n > 1) GOMP_tomorrow(); return 0; }",
                           "-O0", "-L.", "-l:libgomp_versions.so")
    for status, told in (check(bench, versions)[::2], bench.run(versions)[::2]):
        assert status == 78 and len(told.splitlines()) == 1 and "it asks for GOMP_9.0 of libgomp.so.1" in told, (status, told)
    program = bench.build("old", text % ";", "-O0", "-fopenmp", "-L.", "-lown", "-l:libgomp_tomorrow.so")
    status, found = facts(bench, program)
    assert status == 0 and findings(found) == {}, found


def compilers_are_told_apart(bench):
    source = "int made; int main(void) {\n#pragma omp parallel\nmade = 1;\nreturn 0; }"
    program = bench.build("by_gcc", source, "-fopenmp")
    _, found = facts(bench, program)
    assert any(one.startswith("GCC:") for one in found["objects"][0]["compilers"]), found
    assert found["objects"][0]["entry_points"] == ["GOMP_parallel"], found
    if not shutil.which("clang"):
        return
    subprocess.run(["clang", "-x", "c", "-", "-o", "by_clang", "-fopenmp"], input=source.encode(),
                   check=True, cwd=bench.folder)
    _, found = facts(bench, bench.folder / "by_clang")
    assert any("clang version" in one for one in found["objects"][0]["compilers"]), found
    assert found["objects"][0]["entry_points"] == ["__kmpc_fork_call"], found
    assert found["runtimes"] == ["libomp.so.5"], found


CASES = [atomics_are_those_that_a_run_rewrites, libraries_are_private_as_in_a_run,
         endings_are_named_with_their_lines, what_cannot_be_taken_over_has_its_line,
         entry_points_of_newer_compilers_are_named, compilers_are_told_apart]

if __name__ == "__main__":
    sys.exit(main(CASES))
