#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hiroba perf openmp`: that every row is there and measured, in each form; that its answers are checked and that
every node takes part.

Usage: rows_test.py rows --hiroba build/bin/hiroba [--nodes 2] [--threads 1] [--provider shm]
       rows_test.py answers --hiroba build/bin/hiroba --lib build/lib --compiler gcc --sources tools/perf/openmp/program
Samples are tiny: times are not looked at. `answers` breaks constructs in the program's text, one at a time.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

LIMIT_SECONDS = 1500
SYNC = ("parallel", "for", "parallel for", "barrier", "single", "critical, alone", "critical, contended", "lock, alone",
        "lock, each its own", "lock, contended", "ordered", "reduction")
LOOPS = ["for static"] + [f"for {kind},{chunk}" for kind in ("static", "dynamic", "guided") for chunk in (1, 8, 64)]
TASKS = ("tasks of all threads", "tasks of one thread", "tasks with if(0)", "task and taskwait", "task and barrier",
         "task tree of all threads", "task tree of one thread")
ALONE = ("atomic, alone", "atomic, each its own", "atomic, contended", "atomic, contended, data",
         "parallel, own page each", "parallel, all one page", "write, barrier, read neighbour's, barrier",
         "serial write, all read 64 pages")
PAGES = ("copyprivate", "copyin", "firstprivate")
WANTED = {*SYNC, *LOOPS, *TASKS, *(f"{name}, data" for name in (*SYNC, *LOOPS, *TASKS)), *ALONE, *PAGES,
          *(f"{name}, data of 4 KiB" for name in PAGES)}
# Rows whose bodies every thread has to run.
EVERYWHERE = ("parallel", "for", "barrier", "critical, contended", "lock, contended", "atomic, contended", "ordered",
              "reduction", "copyin", "parallel, own page each", "serial write, all read 64 pages", "for static")

# File, right text, wrong text, row, what is said of it.
BREAKS = (
    ("sync.c", "#pragma omp single\n        body();", "        body();", "single", "bodies run:"),
    ("sync.c", "parallel copyin(copied)\n", "parallel\n", "copyin", "a thread found"),
    ("sync.c", "single copyprivate(word)", "single", "copyprivate", "a thread found"),
    ("sync.c", "#pragma omp parallel reduction(+ : sum)\n        {\n            body();\n            sum += 1;",
     "#pragma omp parallel firstprivate(sum)\n        {\n            body();\n            sum += 1;", "reduction",
     "a thread found 0 instead of"),
    ("sync.c", "#pragma omp critical\n        {\n            body();\n            ++guarded;\n        }\n    }\n"
     "    return count;\n}\nstatic void verify_guarded",
     "#pragma omp critical\n        {\n            body();\n            guarded += i % 2;\n        }\n    }\n"
     "    return count;\n}\nstatic void verify_guarded", "critical, contended, data", "a thread found"),
    ("sync.c", "static long barrier(long count) {\n#pragma omp parallel",
     "static long barrier(long count) {\n#pragma omp parallel num_threads(1)", "barrier", "a thread ran bodies:"),
    ("memory.c", "written[page * PAGE_LONGS] = run_base + i + page;",
     "written[page * PAGE_LONGS] = run_base + i + page / 63 * 7 + page;", "serial write, all read 64 pages",
     "a thread found"),
    ("loops.c", "                ++values[t];", "                values[t] += t != 77;", "for dynamic,8, data",
     "a thread found"),
    ("tasks.c", "    return left + right;", "    return left;", "task tree of one thread, data",
     "a thread found 1 instead of 64"),
    ("main.c", 'if (!lists) printf("end', 'if (lists) printf("end', "barrier", "it has not come to its end"),
)


def fail(text, run=None):
    sys.exit(text + (f"\nstatus {run.returncode}\n{run.stdout}\n{run.stderr}" if run else ""))


def perf(hiroba, *words):
    # Threads that spin while they wait would make a busy machine's test last.
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    return subprocess.run([hiroba, "perf", "openmp", *map(str, words)], env=environment, capture_output=True, text=True,
                          timeout=LIMIT_SECONDS)


def names_listed(hiroba):
    run = perf(hiroba, "--list")
    names = [line[:44].rstrip() for line in run.stdout.splitlines()]
    if run.returncode != 0 or len(names) != len(set(names)) or set(names) != WANTED:
        fail(f"--list: lacks {WANTED - set(names)}, has {set(names) - WANTED}", run)
    return names


def check_row(row, options):
    sides = {side["name"]: side for side in row["sides"]}
    if list(sides) != ["hiroba", "libgomp"]:
        fail(f"{row['row']}: sides {list(sides)}")
    if (row["nodes"], row["threads"], row["provider"]) != (options.nodes, options.threads, options.provider):
        fail(f"another job was measured: {row}")
    for name, side in sides.items():
        if not side["least_us"] <= side["median_us"] <= side["p90_us"] or side["samples"] < 2 * 5:
            fail(f"{row['row']}, {name}: {side}")
        if side["p90_us"] > 60e6:
            fail(f"{row['row']}, {name}: a construct took a minute: {side}")
        if not 1 <= side["processes"] <= (options.nodes if name == "hiroba" else 1):
            fail(f"{row['row']}, {name}: ran on {side['processes']} processes")
    if row["row"] in EVERYWHERE and sides["hiroba"]["processes"] != options.nodes:
        fail(f"{row['row']}: only {sides['hiroba']['processes']} nodes ran it")


def check_page(path, rows):
    """The page is well-formed, refers to nothing, and has the figures of `rows`."""
    page = xml.etree.ElementTree.parse(path).getroot()
    if any(name in element.attrib for element in page.iter() for name in ("href", "src")):
        fail("the page refers to something")
    lines = [element for element in page.iter("tr") if element.get("class") == "row"]
    if len(lines) != len(rows):
        fail(f"the page has {len(lines)} rows of {len(rows)}")
    for line, row in zip(lines, rows):
        cells = ["".join(cell.itertext()) for cell in line.iter("td")]
        figures = [side[name] for side in row["sides"] for name in ("least_us", "median_us")]
        differ = [abs(float(cell) - figure) > .0011 for cell, figure in zip(cells[1:5], figures)]
        if cells[0] != row["row"] or any(differ):
            fail(f"{row['row']}: the page says {cells}, the object {figures}")


def check_rows(options):
    names = names_listed(options.hiroba)
    shape = ("--nodes", options.nodes, "--threads", options.threads, "--provider", options.provider,
             "--milliseconds", 1, "--repeat", 2)
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        run = perf(options.hiroba, *shape, "--json", "--html", page)
        if run.returncode != 0:
            fail("no objects", run)
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        if [row["row"] for row in rows] != names:
            fail("rows are not those of --list", run)
        for row in rows:
            check_row(row, options)
        check_page(page, rows)
    others = perf(options.hiroba, *shape, "--only", "single", "--json", "--beside", options.hiroba)
    sides = [[side["name"] for side in json.loads(line)["sides"]] for line in others.stdout.splitlines()]
    if others.returncode != 0 or sides != [["hiroba", "libgomp", options.hiroba]] * 2:
        fail("another hiroba beside it", others)
    table = perf(options.hiroba, *shape, "--only", "critical")
    lines = [line[2:44].rstrip() for line in table.stdout.splitlines() if line.startswith("  critical")]
    if table.returncode != 0 or lines != [name for name in names if "critical" in name]:
        fail("the table lacks rows", table)


def installed(folder, options):
    """hiroba and hiroba-perf in a folder of their own, without the program. @return hiroba's path"""
    commands = folder / "bin"
    commands.mkdir()
    os.symlink(pathlib.Path(options.lib).resolve(), folder / "lib")
    for name in ("hiroba", "hiroba-perf"):
        shutil.copy(pathlib.Path(options.hiroba).parent / name, commands / name)
    return commands / "hiroba"


def compile_one(source, target, options):
    """Compiles one file of the program. All of them include rows.h, which no break changes, from their own folder."""
    subprocess.run([*options.compiler.split(), "-O2", "-fopenmp", "-c", f"-I{source.parents[4]}", source, "-o", target],
                   check=True)


def link(program, objects, options):
    subprocess.run([*options.compiler.split(), "-fopenmp", *objects, "-o", program], check=True)


def check_answers(options):
    sources = pathlib.Path(options.sources).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        hiroba = installed(folder, options)
        program = hiroba.parent / "hiroba-perf-openmp"
        run = perf(hiroba, "--milliseconds", 1)
        if run.returncode != 78 or "there is no " not in run.stderr:
            fail("without the program", run)
        right_objects = {source.name: folder / f"{source.stem}.o" for source in sorted(sources.glob("*.c"))}
        for source, target in right_objects.items():
            compile_one(sources / source, target, options)
        broken = folder / "broken/tools/perf/openmp/program"
        shutil.copytree(sources, broken)
        for file, right, wrong, row, said in BREAKS:
            text = (sources / file).read_text()
            if text.count(right) != 1:
                fail(f"{file}: {text.count(right)} times {right}: break {row} anew")
            (broken / file).write_text(text.replace(right, wrong))
            compile_one(broken / file, folder / "broken.o", options)
            link(program, (right_objects | {file: folder / "broken.o"}).values(), options)
            run = perf(hiroba, "--milliseconds", 1, "--only", row)
            if run.returncode != 70 or said not in run.stderr or run.stdout:
                fail(f"{row}: wanted status 70 and '{said}'", run)
        link(program, right_objects.values(), options)
        run = perf(hiroba, "--milliseconds", 1, "--only", "single")
        if run.returncode != 0:
            fail("the program as it is", run)
        # A launcher that leaves all threads to one process.
        hiroba.rename(hiroba.parent / "hiroba-perf-caller")
        hiroba.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
        hiroba.chmod(0o755)
        run = subprocess.run([hiroba.parent / "hiroba-perf", "openmp", "--milliseconds", "1", "--only", "single"],
                             capture_output=True, text=True, timeout=LIMIT_SECONDS)
        if run.returncode != 70 or "its team lies on 1 of 2 nodes" not in run.stderr:
            fail("one process for two nodes", run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("rows", "answers"))
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--provider", default="shm")
    parser.add_argument("--lib")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--sources")
    options = parser.parse_args()
    check_rows(options) if options.what == "rows" else check_answers(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
