#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows that each test program of the process's world fails without the mechanism it tests.

For every row a copy of libhiroba.so is made in which the mechanism is off: interposed functions are
made undefined in its symbol table, so that the program finds libc's, or inner functions return at
once. The program must pass with the library as it is and fail with the copy.

    switched_off.py --hiroba build/bin/hiroba [--only signals]
"""
import argparse
import copy
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import compare
import crash_runs
import freed_memory
import process_runs
import program_runs

SHT_SYMTAB, SHT_DYNSYM = 2, 11
ATTEMPTS = 4
RETURNS = {None: b"\xc3", 0: b"\x31\xc0\xc3", 1: b"\xb8\x01\x00\x00\x00\xc3"}


class Library:
    """An ELF file of 64 bits, to be changed."""

    def __init__(self, path):
        self.bytes = bytearray(path.read_bytes())
        at, = struct.unpack_from("<Q", self.bytes, 0x28)
        count, = struct.unpack_from("<H", self.bytes, 0x3c)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, at + 64 * i)
                         for i in range(count)]
        at, = struct.unpack_from("<Q", self.bytes, 0x20)
        count, = struct.unpack_from("<H", self.bytes, 0x38)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.bytes, at + 56 * i)
                         for i in range(count)]

    def symbols(self, kind):
        """Each symbol's name, where its entry is, and its address."""
        for section in self.sections:
            if section[1] != kind:
                continue
            names = self.sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", self.bytes, at)
                text = self.bytes[names + name:self.bytes.index(b"\0", names + name)]
                yield text.decode(), at, value

    def hide(self, pattern):
        """Makes exported functions undefined: the program finds the next definition."""
        hidden = [at for name, at, value in self.symbols(SHT_DYNSYM)
                  if value != 0 and re.fullmatch(pattern, name)]
        if not hidden:
            raise LookupError(f"nothing exported is called {pattern}")
        for at in hidden:
            struct.pack_into("<H", self.bytes, at + 6, 0)
            struct.pack_into("<Q", self.bytes, at + 8, 0)

    def stub(self, function, result=None):
        """Has an inner function return at once."""
        mangled = {name: value for name, _, value in self.symbols(SHT_SYMTAB) if value != 0}
        plain = subprocess.run(["c++filt"], input="\n".join(mangled), text=True,
                               capture_output=True, check=True).stdout.splitlines()
        places = {value for name, value in zip(plain, mangled.values())
                  if re.search(r"(^|[: ])" + function + r"(\(|$)", name)}
        if not places:
            raise LookupError(f"no function {function} in the library")
        for place in places:
            for _, flags, offset, address, _, in_file, _, _ in self.segments:
                if flags & 1 and address <= place < address + in_file:  # not its statics
                    begin = offset + place - address
                    self.bytes[begin:begin + len(RETURNS[result])] = RETURNS[result]


class Row:
    """What is shown: `thing` of the issue, the program (a compare.Case, or a case of process_runs),
    what is switched off."""

    def __init__(self, thing, program, hide="", stub=(), result=None, environment=None,
                 nodes=2, threads=1, engine=""):
        self.thing, self.program, self.pattern = thing, program, hide
        self.stubs = (stub,) if isinstance(stub, str) else stub
        self.result, self.environment = result, environment or {}
        self.shape = (nodes, threads, engine)

    def off(self):
        parts = [f"without {self.pattern}"] if self.pattern else []
        parts += [f"{name}() does nothing" if self.result is None else
                  f"{name}() returns {self.result}" for name in self.stubs]
        return ", ".join(parts + [f"{k}={v}" for k, v in self.environment.items()])


def case(text):
    """The compare.Case that is written like this."""
    found = [each for each in compare.all_cases() if str(each) == text]
    assert found, f"compare.py has no case {text!r}"
    return found[0]


def rows():
    interposed = {"HIROBA_SYSTEM_CALLS": "interposed"}
    return [
        Row("mutexes", case("sync_locks.c"), hide="pthread_mutex_.*"),
        Row("names of threads", case("thread_signals.c"), stub="name_elsewhere", result=0),
        Row("children of other nodes", case("children_of_others.c"), stub="look_everywhere", result=0),
        Row("handlers end other nodes' calls", case("ended_calls.c"), stub="Interruption::has_come", result=0),
        Row("dup2 of another node's descriptor", case("descriptors_of_others.c"), stub="duplicating_node", result=0),
        Row("descriptors that come with a message", case("descriptors_of_others.c"), stub="number_received"),
        Row("main's number", case("surroundings.c one  two words --flag=x"), stub="number_for_program", result=0),
        Row("units of other nodes", case("fortran_far_units.f90"), hide="_gfortran_.*"),
        Row("units that another node than 0 has opened", case("fortran_unit.f90 main"), stub="note_open_unit"),
        Row("code that main generates", case("generated_code.c"), stub="find_code_of_others"),
        Row("code that others generate in regions", case("code_in_regions.c"), stub="find_code_of_others"),
        Row("atomics of generated code", case("generated_atomics.c"), stub="mark_atomics_in"),
        Row("code in memory mapped before", case("generated_code.c"), stub="allow_code"),
        Row("variables set in a region", case("variables.c"), stub="follow_variables"),
        Row("signals for threads of other nodes", case("thread_signals.c"), stub="send_to", result=0),
        Row("signals for threads of the runtime", case("thread_signals.c"), stub="note_program_thread"),
        Row("read-write locks", case("sync_locks.c"), hide="pthread_rwlock_.*"),
        Row("spin locks", case("sync_locks.c"), hide="pthread_spin_.*"),
        Row("condition variables", case("sync_events.c"), hide="pthread_cond_.*"),
        Row("barriers", case("sync_events.c"), hide="pthread_barrier_.*"),
        Row("semaphores", case("sync_events.c"), hide="sem_.*"),
        Row("once", case("sync_events.c"), hide="pthread_once"),
        Row("C11 mtx_, cnd_", case("sync_locks.c"), hide="(mtx|cnd)_.*"),
        Row("function statics", case("sync_cxx.cpp"), hide="__cxa_guard_.*"),
        Row("std::mutex, call_once, condition_variable", case("sync_cxx.cpp"),
            hide="pthread_(mutex|once|cond).*"),
        Row("std::atomic, shared_ptr", case("sync_cxx.cpp"), stub="Node::enter_atomic",
            result=0),
        Row("std::atomic::wait", case("sync_atomic_wait.cpp ordered"), stub="is_global_futex", result=0),
        Row("futures, futex(2)", case("sync_futures.cpp"), stub="is_global_futex", result=0),
        Row("thread-specific keys", case("thread_keys.c with a library by gcc"),
            hide="(__)?pthread_(key_create|key_delete|[gs]etspecific)|tss_.*"),
        Row("pipes hand memory on", case("handovers.c"), stub="handover_by", result=0),
        Row("waits for signals of other nodes", case("signal_waits.c"), stub="take_elsewhere", result=0),
        Row("fibers go from node to node", case("fibers.c -O1 -fstack-protector-all"),
            stub="share_stack_guard"),
        Row("user and groups", case("user_ids.c"), stub="become_user"),
        Row("waits within a library", case("waits_in_library.c with a library by gcc"),
            stub="is_system_wait", result=0),
        Row("robust mutexes refused", case("sync_refused.cpp robust"), hide="pthread_mutex_.*"),
        Row("process-shared mutexes refused", case("sync_refused.cpp shared"),
            hide="pthread_mutex_.*"),
        Row("futex refused", case("sync_refused.cpp futex"), stub="is_global_futex", result=0),
        Row("read, write and kin", case("kernel_buffers.c"), hide="p?(read|write)v?(64)?",
            environment=interposed),
        Row("calls inside libc", case("system_calls.c"), environment=interposed,
            hide="(?!pthread|sem|mtx|cnd|.*omp|GOMP|__kmp).*(read|write|stat|dir|recv|send|poll|select|random|"
                 "ioctl|line|addrinfo).*"),
        Row("refused calls made again", case("dropped_buffers.c"),
            stub="PinnedBuffers::map_again", result=0),
        Row("ended transfers finished", case("dropped_buffers.c"), stub="move_more", result=0),
        Row("buffers pinned", case("buffer_storm.c"), stub=r"Node::pin"),
        Row("asynchronous I/O", case("asynchronous_files.c"), hide="aio_.*"),
        Row("direct I/O rings refused", case("refusals.c aio"), hide="syscall",
            environment=interposed),
        Row("mmap, mremap, brk", case("mappings.c"), hide="(mmap|mremap|munmap)(64)?|s?brk"),
        Row("shared mapping refused", case("refusals.c shared"), hide="mmap(64)?"),
        Row("huge allocation refused", case("refusals.c huge"), stub="fits_memory", result=1),
        Row("freed memory given back", freed_memory.freed_memory, stub="FreedPages::step"),
        Row("the machine's memory", case("refusals.c machine"), stub="fits_memory", result=1),
        Row("a control group's memory", process_runs.control_group, stub="fits_memory", result=1),
        Row("mappings run out", case("refusals.c mappings"), stub="die_without_memory"),
        Row("threads of the program", case("threads.c"), hide="pthread_create"),
        Row("the number of the process", case("process_number.c"), hide="getpid"),
        Row("join on another node", case("joins_elsewhere.c"), hide="pthread_join"),
        Row("overflow of such a thread", case("threads.c overflow"), stub="Node::close_guard"),
        Row("overflow names OMP_STACKSIZE", process_runs.stack_overflow,
            stub="BlockSpace::is_stack_guard", result=0),
        Row("requests to devices of node 0 refused", case("refusals.c request"), environment=interposed),
        Row("descriptors of node 0", case("files.c"), environment=interposed),
        Row("FILEs and std::ofstream", case("streams_of_others.cpp"),
            hide="f?(printf|puts|putc|getc|gets|scanf|write|read|flush|eof|seek|tell)|getline"),
        Row("stdin", case("calls_of_others.c"), environment=interposed),
        Row("stdout in order", case("order_in_region.c"), stub="flush_output"),
        Row("libraries' variables", process_runs.library_state, stub="is_system_library",
            result=1),
        Row("libraries called like the system's", program_runs.borrowed_names,
            stub="is_system_library", result=1),
        Row("size of stacks", program_runs.stack_sizes, stub="stack_bytes_from_environment",
            result=0),
        Row("code on stacks", case("code_on_stack.c"), stub="Node::allow_execution"),
        Row("code on stacks, dlopen", program_runs.code_on_stacks_later,
            stub="Node::allow_execution"),
        Row("larger teams", case("team_sizes.c"), stub="start_another_thread"),
        Row("shmat refused", program_runs.memory_of_node_0, hide="shmat|syscall",
            environment=interposed),
        Row("node 0's memory named", program_runs.memory_of_node_0, stub="explain_memory_of"),
        Row("crashes told", crash_runs.ways, stub="report_crash", result=0),
        Row("actions of ours hidden", crash_runs.handled, stub="is_action_that_tells", result=0),
        Row("Fortran's standard units", program_runs.standard_units,
            stub="standard_unit_changed"),
        Row("order of Fortran's lines", program_runs.fortran_lines, stub="write_out"),
        Row("dlopen repeated", process_runs.loading_after_the_start, stub="open_as_on_node_0"),
        Row("initializers held back", process_runs.loading_after_the_start,
            stub="hold_back_initializers"),
        Row("a second OpenMP runtime refused", process_runs.second_runtime, stub="defines",
            result=0),
        Row("chdir, setlocale, setenv, umask", case("process_state.c"),
            stub="apply_process_state"),
        Row("system, popen, posix_spawn", case("children.c"), hide="system|popen|posix_spawnp?",
            environment=interposed),
        Row("fork refused", process_runs.refused_calls, hide="fork", environment=interposed),
        Row("exit on any node", case("status.c exit region 3"), hide="exit"),
        Row("quick_exit on any node", case("status.c quick_exit region 5"), hide="quick_exit"),
        Row("descriptors of ours stay open", case("descriptors.c loop"), stub="is_kept_descriptor",
            result=0),
        Row("libc's own memory", case("libc_results.c"), hide="localtime|gmtime|asctime|ctime"),
        Row("lists of paths", case("libc_results.c"), hide="glob(64)?"),
        Row("handlers of exit on any node", case("end_handlers.cpp return"),
            hide="__cxa_atexit|on_exit"),
        Row("handlers of quick_exit on any node", case("end_handlers.cpp quick_exit"),
            hide="__cxa_at_quick_exit"),
        Row("pthread_exit in a region refused", process_runs.refused_calls, hide="pthread_exit"),
        Row("exec in a region refused", process_runs.refused_calls, hide="exec.*"),
        Row("handlers outside the runtime", case("storm.c"), hide="sigaction|signal"),
        Row("masks leave faults open", case("signals.c"), hide="sigprocmask|pthread_sigmask",
            environment=interposed),
        Row("handlers while main waits", case("signals_in_waits.c"), stub="is_signal_deferred",
            result=0),
    ]


def copy_of(hiroba, folder, row=None):
    """An installation beside each other, as the launcher expects it; with a row, it is off."""
    root = pathlib.Path(folder)
    shutil.copytree(hiroba.parent.parent / "lib", root / "lib", symlinks=True)
    (root / "bin").mkdir()
    shutil.copy2(hiroba, root / "bin/hiroba")
    if row is not None and (row.pattern or row.stubs):
        library = Library(root / "lib/libhiroba.so")
        if row.pattern:
            library.hide(row.pattern)
        for name in row.stubs:
            library.stub(name, row.result)
        (root / "lib/libhiroba.so").write_bytes(library.bytes)
    return root / "bin/hiroba"


def run_program(row, hiroba, folder, environment):
    """What is wrong, or nothing."""
    nodes, threads, engine = row.shape
    if isinstance(row.program, compare.Case):
        one = copy.copy(row.program)
        one.environment = row.program.environment | environment
        options = argparse.Namespace(hiroba=str(hiroba), regions="spread")
        wrong = compare.check(options, one, "pie", nodes, threads, engine, pathlib.Path(folder))
        if "status 127" in wrong:
            raise LookupError(f"too much is hidden, the program does not start: {wrong}")
        return wrong
    try:
        row.program(process_runs.Bench(str(hiroba), folder, nodes, environment))
        return ""
    except (AssertionError, subprocess.TimeoutExpired) as wrong:
        return str(wrong) or "an assertion"


def show(row, hiroba):
    with tempfile.TemporaryDirectory(prefix="off") as folder, \
            tempfile.TemporaryDirectory(prefix="off") as off:
        with_it = run_program(row, hiroba, folder, {})
        without = ""
        switched_off = copy_of(hiroba, off, row)
        for _ in range(ATTEMPTS):  # without a lock one may still be lucky
            without = without or run_program(row, switched_off, folder, row.environment)
    name = row.program.__name__ if callable(row.program) else str(row.program)
    what = " ".join(without.split())[:100]
    good = not with_it and bool(without)
    verdict = "ok  " if good else "FAIL"
    print(f"{verdict} | {row.thing} | {name} | {row.off()} | {what or 'passes without it'}"
          f"{' | fails with it: ' + with_it[:300] if with_it else ''}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--only", default="", help="things whose name contains this")
    options = parser.parse_args()
    compare.LIMIT_SECONDS = process_runs.LIMIT_SECONDS = 20  # many ways to be off hang
    hiroba = pathlib.Path(options.hiroba).resolve()
    wanted = [row for row in rows() if options.only in row.thing]
    shown = sum(show(row, hiroba) for row in wanted)
    print(f"{shown} of {len(wanted)} rows shown")
    return 0 if wanted and shown == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
