#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that refers to libgomp as code of gcc 13 to 16 does runs on one and several nodes.

There is no gcc 16 here: a library of libgomp's name stands in for its libgomp at link time. It has the names that
these have added under the version nodes where they have them, so that the program asks for those nodes.

    newer_gcc.py --hiroba build/bin/hiroba
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from clean_environment import clean_environment

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
# Of libgomp.map of gcc 13 to 16. What else the programs ask for is under a node that gcc 12 has, too.
NODES = {
    "OMP_5.1.1": ["omp_get_mapped_ptr", "omp_target_is_accessible", "omp_target_memcpy_async"],
    "OMP_5.2": ["omp_in_explicit_task"],
    "GOMP_5.1.1": ["GOMP_taskwait_depend_nowait"],
    "GOMP_5.1.2": ["GOMP_add_alloc", "GOMP_is_alloc", "GOMP_target_map_indirect_ptr"],
    "GOMP_5.1.3": ["GOMP_interop", "omp_get_num_interop_properties", "omp_get_interop_int", "omp_get_interop_ptr",
                   "omp_get_interop_name", "omp_get_interop_type_desc", "omp_get_interop_rc_desc", "omp_get_interop_name_",
                   "omp_get_interop_str_"],
    "GOMP_6.0": ["omp_get_device_from_uid", "omp_get_device_from_uid_", "omp_get_uid_from_device", "omp_get_uid_from_device_"],
    "GOMP_6.0.1": ["omp_target_memset", "omp_target_memset_async"],
}
OLD_NODE = "GOMP_4.0"
# (program, compiler, nodes of versions it must ask for, what it prints)
PROGRAMS_RUN = [
    ("newer_gcc.c", "gcc", ["OMP_5.2", "GOMP_5.1.1", "GOMP_5.1.2"], "allocatables 64 of 64\norder 5\nexplicit 1 0\nsame 1\n"),
    ("newest_gcc.c", "gcc", ["GOMP_5.1.3", "GOMP_6.0", "GOMP_6.0.1"],
     "interop 7 none 1 1\nproperties 0 -1 -2 fr_id targetsync none\nuid 1 1 1 -1 -4\nset 40 40 40 5\npinned none, managed some\n"),
    ("all_memory.c", "gcc", ["GOMP_5.1.1"], "rounds 20, wrong 0 0 0 0\n"),
    ("all_memory.c", "clang", [], "rounds 20, wrong 0 0 0 0\n"),
    ("depend_objects.c", "gcc", ["OMP_5.1.1"], "copies 5 5\n"),
    ("depend_objects.c", "clang", ["OMP_5.1.1"], "copies 5 5\n"),
]


def build(directory, source, compiler, asked_for):
    """By a compiler of today, linked with a library of tomorrow's names."""
    name = f"{pathlib.Path(source).stem}_{compiler}"
    compiled = directory / f"{name}.o"
    subprocess.run([compiler, "-O2", "-fopenmp", "-c", str(PROGRAMS / source), "-o", str(compiled)], check=True)
    wanted = subprocess.run(["nm", "-u", str(compiled)], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    new = [name for names in NODES.values() for name in names]
    nodes = dict(NODES)
    if compiler == "gcc":  # LLVM's own library has the others.
        nodes[OLD_NODE] = [n for n in wanted if n.startswith(("GOMP_", "omp_")) and n not in new]
    stand_in, version = directory / f"{name}_names.c", directory / f"{name}.map"
    stand_in.write_text("".join(f"void {n}(void) {{}}\n" for names in nodes.values() for n in names))
    version.write_text("".join(f"{node} {{ global: {'; '.join(names)}; }};\n" for node, names in nodes.items()))
    library = directory / f"lib{name}.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-fno-builtin", "-w", str(stand_in), "-o", str(library),
                    "-Wl,-soname,libgomp.so.1", f"-Wl,--version-script={version}"], check=True)
    program = directory / name
    subprocess.run([compiler, "-O2", "-fopenmp", str(compiled), str(library), "-o", str(program)], check=True)
    asked = subprocess.run(["readelf", "-W", "--version-info", str(program)], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    missing = [node for node in asked_for if not re.search(rf"Name: {re.escape(node)}\s", asked)]
    if missing:
        sys.exit(f"{name} asks for no {missing}: the test shows nothing\n{asked}")
    return program


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="newer_gcc") as directory:
        clean = clean_environment("OMP_", "LD_")
        for source, compiler, asked_for, answer in PROGRAMS_RUN:
            if shutil.which(compiler) is None:
                continue
            program = build(pathlib.Path(directory), source, compiler, asked_for)
            for nodes, threads in ((1, 2), (2, 1), (4, 1)):
                done = subprocess.run([options.hiroba, "run", "-n", str(nodes), "--threads", str(threads), "--",
                                       str(program)], env=clean | {"HIROBA_STATS": "1"}, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, timeout=120)
                regions = re.search(r"^parallel_regions((?: +\d+)+)$", done.stderr, re.MULTILINE)
                part = [int(n) for n in regions.group(1).split()[:-1]] if regions else []
                idle = nodes > 1 and (len(part) != nodes or 0 in part)
                right = done.returncode == 0 and done.stdout == answer and not idle
                print(f"{'ok  ' if right else 'FAIL'} {source} by {compiler}, {nodes} nodes of {threads}" +
                      ("" if right else f": status {done.returncode}, regions {part}: {done.stdout}{done.stderr[-900:]}"))
                failed += not right
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
