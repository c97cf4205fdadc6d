#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs each program of test/cluster/programs bare and under `hiroba run`, and compares.

The bare run (stock compiler, its stock runtime, as many threads as the job has) is the truth: standard
output, exit status and, for runs that end well, standard error must be equal. A run that does not
end in time is a failure. Every node must have taken part in a region where the program has one.

    compare.py --hiroba build/bin/hiroba                 a few minutes
    compare.py --hiroba build/bin/hiroba --smoke         two nodes, one engine, once
    compare.py --hiroba build/bin/hiroba --only status   one program
    compare.py --hiroba build/bin/hiroba --only clang    what clang builds, which --smoke alone leaves out
    compare.py --hiroba build/bin/hiroba --part 1/4      each fourth program
    compare.py --smoke --programs FOLDER --compile       compiles the programs into FOLDER, where the same without --compile
                                                         finds them
"""
import argparse
import copy
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import memory_table
from built_programs import compiled
from clean_environment import clean_environment

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
LIMIT_SECONDS = 300  # of wall time: a hang, and no busy machine
# Descriptors with a node of their own, and calls libc makes inside itself, need this.
EXAMINED = {"HIROBA_SYSTEM_CALLS": "examined"}


class Case:
    """One program with arguments and input. `regions`: its nodes must all take part. `refused`:
    on several nodes it must end with status 78 and a line that has this in it."""

    def __init__(self, source, *arguments, stdin=b"", regions=True, stderr=True, environment=None,
                 refused=None, tasks=False, compiler="gcc", flags=(), library=None, threads=1,
                 any_order=False, several=False, moves=None):
        self.source, self.arguments, self.stdin = source, list(arguments), stdin
        self.regions, self.stderr = regions, stderr
        self.tasks = tasks  # each node must have executed some
        self.threads = threads  # of each node, at least: where its fault shows
        self.several = several  # nodes at least: one keeps to what its threads were made with
        self.any_order = any_order  # of the lines on standard output
        self.moves = moves  # whether regions stay on node 0 where that is tried; None: they may
        self.environment = {"KMP_WARNINGS": "0"} | (environment or {})  # of LLVM's runtime alone
        self.refused = refused  # (status, what a line says), where no bare run is the truth
        self.compiler, self.flags = compiler, list(flags)
        self.library = library  # (source, compiler, its name if it has one): what it is linked with

    def __str__(self):
        return " ".join([self.source] + self.arguments +
                        ([f"by {self.compiler}"] if self.compiler != "gcc" else []) + self.flags +
                        ([f"with a library by {self.library[1]}"] if self.library else []))

    def by(self, compiler):
        """The same, built by another compiler."""
        other = copy.copy(self)
        other.compiler = compiler
        return other


def all_cases():
    text = b"first\nsecond line\n\nshort\n" + bytes(range(256)) * 9000
    ends = [Case("status.c", how, "main", status, stderr=False)
            for how, status in [("return", "0"), ("return", "3"), ("exit", "0"), ("exit", "3"),
                                ("exit", "255"), ("_exit", "4"), ("quick_exit", "5"),
                                ("abort", "0"), ("crash", "16")]]
    ends += [Case("status.c", how, "region", status, stderr=False, regions=False)
             for how, status in [("exit", "3"), ("_exit", "4"), ("quick_exit", "5"),
                                 ("abort", "0"), ("crash", "16")]]
    ends += [Case("end_handlers.cpp", how, stderr=False, regions=how == "return")
             for how in ("return", "exit", "quick_exit")]
    ends += [Case("cxx_handlers.cpp", how, stderr=False, regions=False) for how in ("terminate", "memory")]
    ends += [Case("fatal_error.c", *how, stderr=False, regions=False)
             for how in (["main"], ["region", "handler"], ["region"])]
    refused_rows = [Case("memory_table.rows", flags=["-DROW=" + row.name], refused=(78, row.says.encode()))
                    for row in memory_table.rows_of(PROGRAMS / "memory_table.rows") if row.way == "refused"]
    return ends + refused_rows + [
        Case("order.c"), Case("order_in_region.c"),
        Case("order_in_region.c", environment={"HIROBA_NEWS": "message"}),
        Case("echo.c", stdin=text),
        Case("echo.c", stdin=b""),
        Case("surroundings.c", "one", "", "two words", "--flag=x"),
        Case("surroundings.c", environment={"LD_BIND_NOW": "1",
                                            "GLIBC_TUNABLES": "glibc.malloc.check=0"}),
        Case("static_region.cpp"),
        Case("threadprivate.c"),
        Case("code_on_stack.c"),
        Case("internal_procedures.f90"),
        Case("team_sizes.c"),
        Case("runtime_calls.c"),
        Case("openmp_rows.c"),
        Case("openmp_rows.c", "display", stderr=False),
        Case("openmp_rows.cpp"),
        Case("openmp_rows.f90"),
        Case("regions_in_halves.c"),
        Case("regions_in_halves.c", environment={"OMP_SCHEDULE": "dynamic,3", "HIROBA_PROVIDER": "udp"}),
        Case("openacc.c", flags=["-fopenacc"]),
        Case("openacc.c", "nvidia", flags=["-fopenacc"], stderr=False),
        Case("openacc.f90", flags=["-fopenacc"]),
        Case("spin_on_flag.c"),
        Case("flags.c"),
        Case("flag_behind_pages.c"),
        Case("wait_loops.c"),
        Case("wait_loops.c", threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        Case("tasks.c", tasks=True),
        Case("tasks.c", tasks=True, environment={"HIROBA_PROVIDER": "udp"}),
        Case("tasks_depend.c"),
        Case("tasks_behind_barriers.c", "12", tasks=True, threads=2),
        Case("behind_barriers.c", threads=2),
        Case("single_then_atomics.c"),
        Case("single_then_atomics.c", threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        Case("lost_singles.c", threads=2),
        Case("lost_singles.c", threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        Case("locks_behind_barriers.c", threads=2),
        Case("many_tasks.c", "20000"),
        Case("doacross.c"),
        Case("doacross.c", environment={"HIROBA_PROVIDER": "udp", "OMP_SCHEDULE": "guided,2"}),
        Case("target.c"),
        Case("places.c", environment={"OMP_PLACES": "threads"}),
        Case("places.c", environment={"OMP_PROC_BIND": "spread,close", "OMP_PLACES": "{0},{0}"}),
        Case("places.c", environment={"GOMP_CPU_AFFINITY": "0 0"}),
        Case("places.c", environment={"OMP_PROC_BIND": "false", "OMP_PLACES": "cores"}),
        Case("nested.c"),
        Case("nested.c", environment={"HIROBA_PROVIDER": "udp"}),
        Case("cancel.c", environment={"OMP_CANCELLATION": "true"}),
        Case("cancel.c", environment={"OMP_CANCELLATION": "true", "HIROBA_PROVIDER": "udp"}),
        Case("cancel.c", "10", environment={"OMP_CANCELLATION": "true", "HIROBA_NEWS": "message"}),
        Case("cancel.c", environment={"OMP_CANCELLATION": "false"}),
        Case("tasks_depend.c", environment={"HIROBA_PROVIDER": "udp"}),
        Case("plain.c", "last", regions=False),
        Case("libc_results.c"),
        Case("libc_objects.c"),
        Case("memory_table.rows"),
        Case("cxx_objects.cpp"),
        Case("cxx_objects.cpp", flags=["-D_GLIBCXX_USE_CXX11_ABI=0"]),
        Case("descriptors.c", "loop", stderr=False, regions=False),
        Case("descriptors.c", "from", stderr=False, regions=False),
        Case("descriptors.c", "range", stderr=False, regions=False),
        Case("cxx_streams.cpp"),
        Case("cxx_streams.cpp", "unsynchronized"),
        Case("cxx_unsynchronized.cpp", stdin=b"a\nb\nc\nd\ne\nf\ng\nh\n"),
        Case("cxx_streams.cpp", "synchronized", "throw", stderr=False),
        Case("signals.c", stderr=False),
        Case("profiled.c"),
        Case("profiled.c", flags=["-pg"]),
        Case("signals_in_waits.c"),
        Case("thread_signals.c", threads=2),
        Case("thread_signals.c", threads=2, environment={"HIROBA_SYSTEM_CALLS": "interposed", "HIROBA_PROVIDER": "udp"}),
        Case("kernel_buffers.c"),
        Case("dropped_buffers.c"),
        Case("file_limit.c"),
        Case("system_calls.c", environment=EXAMINED),
        Case("pinned_buffers.cpp"),
        Case("files.c", environment=EXAMINED),
        Case("record_locks.c", environment=EXAMINED),
        Case("kernel_order.c", environment=EXAMINED),
        Case("kernel_order.c", environment=EXAMINED | {"HIROBA_PROVIDER": "udp"}),
        Case("handovers.c", environment=EXAMINED),
        Case("handovers.c", environment=EXAMINED | {"HIROBA_PROVIDER": "udp"}),
        Case("user_ids.c"),
        *([Case("user_ids.c", "region", refused=(78, b"in a parallel region refused"), regions=False)]
          if os.geteuid() == 0 else []),
        Case("signal_waits.c", environment=EXAMINED),
        Case("cancelled_waits.c", threads=2, environment=EXAMINED),
        *[Case("cancelled_waits.c", victim, refused=(78, b"pthread_cancel of main's thread or a thread of a parallel region"))
          for victim in ("main", "region")],
        Case("cancelled_waits.c", environment={"HIROBA_SYSTEM_CALLS": "interposed", "HIROBA_PROVIDER": "udp"}),
        Case("fibers.c", flags=["-O1", "-fstack-protector-all"]),
        Case("packed_atomics.c"),
        Case("yields.c"),
        Case("redirected.c"),
        *[Case("whole_lines.c", how, any_order=True, regions=how != "line", threads=2) for how in ("usual", "line", "none", "own")],
        Case("mappings.c"),
        Case("memory_advice.c"),
        Case("early_mappings.c", library=("early_mappings_library.c", "gcc")),
        Case("early_regions.c", library=("early_regions_library.c", "gcc")),
        Case("freed_memory.c", "malloc", "3", "40"),
        Case("freed_memory.c", "elsewhere", "3", "40"),
        Case("freed_memory.c", "calloc", "3", "40"),
        Case("freed_memory.c", "mmap", "3", "40"),
        Case("calls_of_others.c", environment=EXAMINED, stdin=b"41 first\nsecond line\nthird\n"),
        Case("streams_of_others.cpp", environment=EXAMINED, stdin=b"one\ntwo\nthree\nfour\nfive\n"),
        *[Case(name, environment=EXAMINED | {"HIROBA_PROVIDER": "udp"}) for name in ["rows_of_streams.c", "short_answers.c", "stream_state.c"]],
        Case("stream_state.c", flags=["-DINLINED", "-O2"], refused=(78, b"Compile with -D__NO_INLINE__")),
        Case("own_threads.cpp"),
        Case("own_threads.cpp", "pthread_exit"),
        Case("thread_keys.c", library=("thread_keys_library.c", "gcc")),
        Case("thread_keys.c", "leave", regions=False, library=("thread_keys_library.c", "gcc")),
        Case("threads.c"),
        Case("threads.c", "regions only"),
        Case("threads.c", "overflow", refused=(139, b"in a thread the program made")),
        Case("two_locks.c"),
        Case("two_locks.c", environment={"HIROBA_PROVIDER": "udp"}),
        Case("two_locks.c", environment={"HIROBA_EXCLUSIVE": "off"}),
        Case("process_number.c"),
        Case("process_number.c", environment={"HIROBA_PROVIDER": "udp"}),
        Case("joins_elsewhere.c"),
        Case("joins_elsewhere.c", environment={"HIROBA_PROVIDER": "udp"}),
        Case("fortran_start.f90", "one", "two words", "three"),
        Case("fortran_print.f90"),
        Case("fortran_newunit.f90"),
        Case("fortran_constructs.f90"),
        Case("fortran_constructs.f90", environment={"HIROBA_PROVIDER": "udp"}),
        Case("fortran_tasks.f90", tasks=True),
        Case("fortran_newer.f90", environment={"OMP_CANCELLATION": "true"}),
        Case("omp_locks.c"),
        Case("reductions.c"),
        Case("reductions.c", environment={"HIROBA_PROVIDER": "udp", "OMP_MAX_ACTIVE_LEVELS": "2"}),
        Case("sync_locks.c"), Case("sync_events.c"),
        Case("sync_cxx.cpp"),
        Case("sync_atomic_wait.cpp"),
        Case("sync_atomic_wait.cpp", "ordered", environment={"HIROBA_ATOMICS": "seq_cst"}),
        Case("sync_futures.cpp"), Case("sync_semaphores.cpp", threads=2),
        *[Case(*what, environment={"HIROBA_PROVIDER": "udp"}) for what in [["sync_futures.cpp"], ["sync_semaphores.cpp", "20"]]],
        Case("waits_in_library.c", library=("waits_in_library_runtime.c", "gcc", "libitm.so.1")),
        Case("sync_stress.cpp", "1", "600"),
        Case("sync_refused.cpp", "robust", refused=(78, b"robust mutex at 0x")),
        Case("sync_refused.cpp", "shared", refused=(78, b"process-shared mutex at 0x")),
        Case("sync_refused.cpp", "futex", refused=(78, b"futex at 0x")),
        Case("process_state.c"), Case("registrations.c"), Case("registrations.c", "nothing"),
        *[Case("registrations.c", word, refused=(0, call + b"() in a parallel region on this node"))
          for word, call in [("domain", b"textdomain"), ("conversion", b"register_printf_specifier"), ("zone", b"tzset")]],
        Case("library_handles.c", flags=["-Wl,--no-as-needed", "-lm"]), Case("variables.c", threads=2),
        Case("variables.c", flags=["-DSTORES"], threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        Case("attribute_rows.c", flags=["-Wl,--no-as-needed", "-lm"], several=True),
        Case("attribute_rows.c", flags=["-Wl,--no-as-needed", "-lm"], several=True, environment={"HIROBA_SYSTEM_CALLS": "interposed"}),
        Case("inherited.c"),
        Case("inherited.c", environment={"HIROBA_SYSTEM_CALLS": "interposed"}),
        Case("sandbox.c"),
        *[Case("sandbox.c", how, refused=(78, b"would hold on node 0 alone"))
          for how in ("prctl", "seccomp", "landlock", "unshare", "setns", "chroot", "pivot_root", "capabilities")],
        Case("sandbox.c", "chroot", environment={"HIROBA_SYSTEM_CALLS": "interposed"},
             refused=(78, b"would hold on node 0 alone")),
        Case("floating_point.c", flags=["-Wl,--no-as-needed", "-lm"]),
        Case("storm.c"),
        Case("storm.c", environment={"HIROBA_NEWS": "message"}),
        Case("late_handler.c"), Case("timer_stops.c"),
        Case("buffer_storm.c"),
        Case("generated_code.c"), Case("code_in_regions.c", threads=2), Case("generated_atomics.c", threads=2),
        Case("generated_code.c", threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        *[Case(name, environment={"HIROBA_PROVIDER": "udp"}) for name in ["code_in_regions.c", "generated_atomics.c"]],
        Case("children.c", regions=False),
        Case("child_signals.c", threads=2),
        Case("child_signals.c", environment={"HIROBA_PROVIDER": "udp"}),
        Case("children_of_others.c"),
        Case("children_of_others.c", threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        Case("ended_calls.c", environment=EXAMINED),
        Case("ended_calls.c", threads=2, environment=EXAMINED | {"HIROBA_PROVIDER": "udp"}),
        *[Case("fortran_unit.f90", what, regions=what != "output")
          for what in ["number", "chosen", "main", "nobody", "output"]],
        Case("fortran_unit.f90", "input", stdin=b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
        Case("fortran_unit.f90", "main", threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        Case("fortran_unit.f90", "ends", regions=False),
        Case("fortran_far_type.f90", refused=(78, b"a derived type's own input or output on a Fortran unit")),
        Case("fortran_far_units.f90"),
        Case("fortran_far_units.f90", environment=EXAMINED),
        Case("fortran_far_units.f90", threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        Case("fortran_statements.f90"),
        Case("fortran_statements.f90", "stop", regions=False),
        Case("fortran_own_units.f90"),
        Case("fortran_own_units.f90", threads=2, environment={"HIROBA_PROVIDER": "udp"}),
        Case("asynchronous_files.c"),
        Case("notices.c", threads=2),
        Case("vectors.c", threads=2),
        Case("descriptors_of_others.c"),
        *[Case("descriptors_of_others.c", what, environment=EXAMINED, refused=(78, line))
          for what, line in [("onto_main", b"all nodes would look for that on node 0"),
                             ("onto_own", b"all nodes would look for that on node"),
                             ("epoll", b"system call 233 on both refused"), ("pass", b"a message of this node cannot take it along"),
                             ("pass_there", b"system call 46 on it refused here"), ("tee", b"system call 276 on both refused")]],
        Case("descriptors_of_others.c", environment={"HIROBA_PROVIDER": "udp"}),
        Case("last_calls.c"),
        Case("asynchronous_files.c", "pipe", refused=(1, b"aio on descriptor")),
        Case("refusals.c", "shared", refused=(1, b"mmap of descriptor")),
        Case("refusals.c", "aio", refused=(1, b"io_setup refused")),
        Case("refusals.c", "request", environment=EXAMINED, refused=(78, b"belongs to node 0: system call 16")),
        Case("refusals.c", "machine", environment={"HIROBA_HEAP": "256G"},
             refused=(1, b"of the machine); use more nodes, or set HIROBA_MEMORY")),
        Case("refusals.c", "mappings", refused=(78, b"mappings in use of")),
        Case("refusals.c", "huge", environment={"HIROBA_MEMORY": "2G"},
             refused=(1, b"of 2147483648 this node may use (HIROBA_MEMORY)")),
    ]


# What clang 14 does not compile (nested functions, `scope`), what is about gcc's runtime, what
# LLVM's does not end (target.c), and what clang compiles to a program that ends in a segmentation
# fault bare: a task of a task reduction inside another (tasks_depend.c). LLVM's runtime has other
# limits (nested.c) and says other bindings (places.c), and aborts in cancel.c. It gives an inner team threads of its pool,
# with what these had before, and a new thread the processors of its first region's leader: that is not followed (inherited.c).
GCC_ONLY = {"code_on_stack.c", "runtime_calls.c", "doacross.c", "target.c", "tasks_depend.c", "nested.c", "places.c", "behind_barriers.c",
            "cancel.c", "moving_regions.c", "inherited.c", "openacc.c", "early_regions.c", "regions_in_halves.c"}


def clang_cases():
    """What its entry points are for, each group of them; and every program there is."""
    own = [
        Case("clang_regions.c"),
        Case("clang_affinity.c", environment={"OMP_DISPLAY_AFFINITY": "true"}, any_order=True),
        Case("clang_loops.c"),
        Case("clang_loops.c", environment={"OMP_SCHEDULE": "guided,3"}),
        Case("clang_tasks.c", tasks=True),
        Case("clang_tasks.c", tasks=True, environment={"HIROBA_PROVIDER": "udp"}),
        Case("clang_objects.cpp"),
        Case("clang_reductions.c"),
        Case("clang_threadprivate.c"),
        Case("clang_threadprivate.c", flags=["-fnoopenmp-use-tls"]),
        Case("clang_threadprivate.c", flags=["-femulated-tls"]),
        Case("own_to_threads.c", flags=["-D_GNU_SOURCE", "-DKIND=tls", "-femulated-tls"],
             environment={"HIROBA_REGIONS": "turns"}),
        Case("clang_target.c"),
        Case("clang_target.c", flags=["-fopenmp-targets=x86_64-pc-linux-gnu"]),
        Case("clang_calls.c"),
        Case("clang_atomics.c"),
        Case("clang_cancel.c"),
        Case("clang_cancel.c", environment={"OMP_CANCELLATION": "true"}),
        Case("two_compilers.c", library=("two_compilers_library.c", "gcc")),
    ]
    mixed = Case("two_compilers.c", library=("two_compilers_library.c", "clang"))
    return [case.by("clang") for case in own] + [mixed] + [
        case.by("clang") for case in all_cases()
        if case.source not in GCC_ONLY and not case.source.endswith(".f90") and not case.refused and
        case.arguments != ["pthread_exit"]]  # Where LLVM's runtime may not end.


def clang_smoke_cases():
    """One run of each program that both compilers build, and each way out of a region and of an exception, where frames of
    the compiler's are on the stack: else what it makes of a program shows in any run; arguments and settings are told apart
    by what gcc built."""
    seen, cases = set(), []
    for case in clang_cases():
        what = case.source, tuple(case.arguments) if {"region", "throw"} & set(case.arguments) else ()
        if case.source.startswith("clang_") or case.library:  # clang's own: each says something else
            what = len(cases)
        if what not in seen:
            seen.add(what)
            cases.append(case)
    return cases


def flang_cases():
    """What flang 19 compiles and executes bare as gfortran's does (its tasks do not)."""
    return [Case(name).by("flang") for name in ["fortran_constructs.f90", "internal_procedures.f90"]]


# What threads may keep from region to region (programs/own_to_threads.c): regions move, never move, or no longer once
# it is seen, whether the region where that happens is spread or not.
KEPT_ANYWHERE = ["mutex", "rwlock", "omp_lock", "number", "descriptor", "stream", "directory", "events", "sockets", "mapping",
                 "heap", "semaphore", "random", "icv"]
KEPT_BY_THREADS = ["tls"]
SEEN_TO_BE_KEPT = ["sse", "sse_of_one", "x87", "recursive", "checked", "thread", "child", "key", "self", "gettid", "syscall",
                   "mask", "stack", "stack_bounds", "name", "cancelling", "locale", "rounding", "context", "file_lock"]
SEEN_IN_LIBRARY = ["library", "address"]


def kinds_of_own():
    def case(kind, moves, *arguments, library=None):
        return Case("own_to_threads.c", *arguments, flags=["-D_GNU_SOURCE", "-DKIND=" + kind, "-Wl,--no-as-needed", "-lm"], moves=moves,
                    environment={"HIROBA_REGIONS": "turns"}, library=library)

    return ([case(kind, True) for kind in KEPT_ANYWHERE] + [case(kind, False) for kind in KEPT_BY_THREADS] +
            [case(kind, None, *plain) for kind in SEEN_TO_BE_KEPT for plain in ((), ("8",))] +
            [case(kind, None, *plain, library=("own_to_threads_library.c", "gcc"))
             for kind in SEEN_IN_LIBRARY for plain in ((), ("8",))] +
            [Case("own_to_threads.f90", kind, environment={"HIROBA_REGIONS": "turns"}) for kind in ("numbers", "units")])


def turns_cases():
    """What could tell where a region runs, with regions that run now on all nodes, now on one."""
    turns = {"HIROBA_REGIONS": "turns"}
    return [Case(name, environment=turns) for name in
            ["moving_regions.c", "threads_apart.c", "threadprivate.c", "team_sizes.c", "nested.c", "reductions.c",
             "tasks_depend.c"]] + kinds_of_own() + [
        Case("moving_regions.c", "levels", environment=turns | {"OMP_MAX_ACTIVE_LEVELS": "2"}, regions=False),
        Case("moving_regions.c", environment=turns | {"HIROBA_PROVIDER": "udp"}),
        Case("moving_regions.c", environment=turns | {"OMP_CANCELLATION": "true"}, threads=2),
        Case("cancel.c", environment=turns | {"OMP_CANCELLATION": "true"}),
        Case("floating_point.c", flags=["-Wl,--no-as-needed", "-lm"], environment=turns)]


STANDARDS = {name: ["-std=c++20"] for name in ["sync_atomic_wait.cpp", "sync_futures.cpp", "sync_semaphores.cpp"]}
COMPILERS = {
    "gcc": {".c": ["gcc"], ".cpp": ["g++", "-std=c++17", "-pthread"], ".f90": ["gfortran"]},
    "clang": {".c": ["clang"], ".cpp": ["clang++", "-std=c++17", "-pthread"]},
    # Its OpenMP runtime is clang's; Debian lets one be installed.
    "flang": {".f90": [next(filter(shutil.which, ["flang-new-19", "flang-new", "flang"]), "")]},
}


BUILT = set()  # by this process


def build(case, flavour, directory):
    """Compiles a program as any user would; nothing of hiroba is involved."""
    path = PROGRAMS / case.source
    name = "-".join([path.stem, path.suffix[1:], flavour, case.compiler] + case.flags +
                    ([case.library[1]] if case.library else []))
    target = directory / re.sub(r"[^\w-]", "_", name)
    if target in BUILT:
        return target
    position = {"pie": [], "no-pie": ["-no-pie", "-fno-pie"]}[flavour]
    openmp = [] if path.stem == "plain" else ["-fopenmp"]
    more = []
    if case.library:
        source, compiler, *named = case.library
        library = directory / (named[0] if named else f"lib{pathlib.Path(source).stem}_{compiler}.so")
        compiled(COMPILERS[compiler][".c"] + ["-O2", "-fopenmp", "-shared", "-fPIC", PROGRAMS / source], library)
        more = [library, f"-Wl,-rpath,{directory}"]
    if case.compiler == "flang":
        link = directory / "libomp.so"
        if not link.exists():
            link.symlink_to(clang_file("libomp.so.5"))
        more += [f"-L{directory}"]
    if "-fopenmp-targets" in name:  # Where the bare run finds what offloads.
        more += ["-Wl,-rpath," + str(pathlib.Path(clang_file("libomptarget.so")).parent)]
    if path.suffix == ".rows":
        rows = memory_table.rows_of(path)
        path = directory / (path.stem + ".c")
        row_flag = next((flag for flag in case.flags if flag.startswith("-DROW=")), None)
        wanted = [row for row in rows if (row.way != "refused" if row_flag is None else row_flag == "-DROW=" + row.name)]
        path = path.with_name(target.name + ".c")
        text = memory_table.program_of(wanted)
        if not path.exists() or path.read_text() != text:  # a new file is compiled anew
            path.write_text(text)
    compiled(COMPILERS[case.compiler][path.suffix] + ["-O2"] + openmp + position + STANDARDS.get(case.source, []) +
             case.flags + [path] + more, target)
    BUILT.add(target)
    return target


def clang_file(name):
    """Where clang has one of its libraries."""
    said = subprocess.run(["clang", "-print-file-name=" + name], stdout=subprocess.PIPE, text=True,
                          check=True)
    return str(pathlib.Path(said.stdout.strip()).resolve())


def run(command, case, extra, folder=None):
    environment = clean_environment("OMP_", "LD_", "GLIBC_TUNABLES")
    environment.update(case.environment)
    environment.update(extra)
    try:
        done = subprocess.run(command + case.arguments, input=case.stdin, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT_SECONDS, cwd=folder)
    except subprocess.TimeoutExpired as late:  # its nodes die with the launcher
        return None, late.stdout or b"", late.stderr or b""
    # A shell's view of a death by signal.
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return status, done.stdout, done.stderr


def without_lines_of_hiroba(stderr):
    return b"".join(line for line in stderr.splitlines(True) if not line.startswith(b"hiroba"))


def participation(stderr, counter=b"parallel_regions"):
    """Regions by node, from the table HIROBA_STATS=1 prints: the last column is the sum."""
    row = re.search(rb"^" + counter + rb"((?: +\d+)+)$", stderr, re.MULTILINE)
    return dict(enumerate(int(n) for n in row.group(1).split()[:-1])) if row else {}


def regions_moved(stderr):
    """Whether node 0 has kept some."""
    return re.search(rb"^regions_stayed +[1-9]", stderr, re.MULTILINE) is not None


def check(options, case, flavour, nodes, threads, engine, directory):
    """Returns what is wrong, or nothing."""
    program = build(case, flavour, directory)
    # The compilers' own runtimes would spin for long where the machine has other work.
    team = {"OMP_NUM_THREADS": str(nodes * threads), "GOMP_SPINCOUNT": "1000",
            "KMP_BLOCKTIME": "0"}
    if engine:
        # Present in both runs, so that programs that print their environment agree.
        team["HIROBA_FAULT_ENGINE"] = engine
    team["HIROBA_STATS"] = "1"
    # What is proven of nodes is to be so whatever the clock says.
    team["HIROBA_REGIONS"] = case.environment.get("HIROBA_REGIONS", options.regions)
    # LLVM's runtime stands in for gcc's where it comes first, so that the bare run has one, too.
    mixed = len(case.library or ()) == 2 and case.library[1] != case.compiler
    one_runtime = {"LD_PRELOAD": clang_file("libomp.so.5")} if mixed else {}
    command = [options.hiroba, "run", "-n", str(nodes), "--threads", str(threads), "--",
               str(program)]
    # Files that programs name without a folder are no others': parts of the list run beside each other.
    with tempfile.TemporaryDirectory(prefix="compare") as folder:
        status, stdout, stderr = run([str(program)], case, team | one_runtime, folder)
        got_status, got_stdout, got_stderr = run(command, case, team, folder)

    if case.refused is not None and nodes > 1:
        return refusal_fault(case, got_status, got_stderr)
    if case.refused is not None:
        return ""  # one node refuses nothing

    # argv[0] is the program's path in both.
    wrong = []
    if got_status is None:
        wrong.append(f"did not end within {LIMIT_SECONDS} s")
    elif got_status != status:
        wrong.append(f"status {got_status}, bare {status}")
    if case.any_order:
        stdout, got_stdout = (b"".join(sorted(text.splitlines(True))) for text in (stdout, got_stdout))
    if got_stdout != stdout:
        wrong.append("standard output differs\n--- bare\n" + stdout[-600:].decode(errors="replace") +
                     "\n--- hiroba\n" + got_stdout[-600:].decode(errors="replace"))
    if case.stderr and without_counters(got_stderr) != stderr:
        wrong.append("standard error differs\n" + got_stderr[-600:].decode(errors="replace"))
    if case.regions and status is not None and status < 128 and got_status == status:
        part = participation(got_stderr)
        idle = [node for node in range(nodes) if part.get(node, 0) < 1]
        # A program that leaves without handlers, or in a region, cannot report.
        if options.regions == "spread" and idle and case.arguments[:1] not in (["_exit"], ["quick_exit"]):
            wrong.append(f"nodes {idle} took part in no region")
    if case.moves is not None and nodes > 1 and regions_moved(got_stderr) != case.moves:
        wrong.append("regions moved" if not case.moves else "no region moved")
    if case.tasks and options.regions == "spread":
        part = participation(got_stderr, b"tasks_executed")
        idle = [node for node in range(nodes) if part.get(node, 0) < 1]
        if idle:
            wrong.append(f"nodes {idle} executed no task, of {part}: " +
                         got_stderr[-2000:].decode(errors="replace"))
    if wrong and not case.stderr:
        wrong.append("standard error: " + got_stderr[-300:].decode(errors="replace"))
    said = [line.decode(errors="replace") for line in got_stderr.splitlines()
            if line.startswith(b"hiroba")]
    if wrong and said:
        wrong.append("hiroba said:\n" + "\n".join(said[:20]))
    return "; ".join(wrong)


def refusal_fault(case, status, stderr):
    """What is wrong with a run that was to be refused."""
    wanted_status, wanted_line = case.refused
    lines = [line for line in stderr.splitlines() if wanted_line in line]
    if status == wanted_status and len(lines) == 1 and lines[0].startswith(b"hiroba["):
        return ""
    return f"status {status}, lines {lines}\n" + stderr[-600:].decode(errors="replace")


def without_counters(stderr):
    """Standard error without the table HIROBA_STATS=1 adds at the end."""
    return re.split(rb"^counter +node 0", without_lines_of_hiroba(stderr), flags=re.MULTILINE)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", default="build/bin/hiroba")
    parser.add_argument("--programs", help="folder in which compiled programs are kept; else nothing is")
    parser.add_argument("--compile", action="store_true", help="compile them and run nothing")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--smoke", action="store_true", help="two nodes, default engine, PIE")
    parser.add_argument("--regions", default="spread", choices=["spread", "auto", "turns"],
                        help="where they run; nodes must take part where they are spread")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--part", default="1/1", help="K/N: of N programs that follow each other, the K-th")
    options = parser.parse_args()
    options.hiroba = str(pathlib.Path(options.hiroba).resolve())

    shapes = [("pie", 2, 1, "")] if options.smoke else [
        ("pie", 1, 2, ""), ("pie", 2, 1, ""), ("pie", 4, 1, ""), ("pie", 2, 2, ""),
        ("no-pie", 2, 1, ""), ("pie", 2, 1, "mprotect"), ("no-pie", 3, 2, "mprotect")]
    cases = all_cases() + turns_cases()
    if not options.smoke or "clang" in options.only:
        if shutil.which("clang"):
            cases += clang_smoke_cases() if options.smoke else clang_cases()
        elif "clang" in options.only:
            print("there is no clang here")
            return 0 if options.compile else 77
    if (not options.smoke or "flang" in options.only) and all(map(shutil.which, ["clang", COMPILERS["flang"][".f90"][0]])):
        cases += flang_cases()
    part, parts = map(int, options.part.split("/"))
    cases = [case for case in cases if options.only in str(case)][part - 1::parts]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="compare") as passing:
        directory = pathlib.Path(options.programs or passing).resolve()
        if options.compile:
            for case in cases:
                build(case, shapes[0][0], directory)
            return 0
        for flavour, nodes, threads, engine in shapes * options.repeat:
            for case in cases:
                if case.several and nodes == 1:
                    continue
                of_node = max(threads, case.threads)
                wrong = check(options, case, flavour, nodes, of_node, engine, directory)
                name = f"{case} ({flavour}, {nodes} nodes of {of_node}, {engine or 'auto'})"
                print(f"FAIL {name}: {wrong}" if wrong else f"ok   {name}", flush=True)
                passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
