#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What surrounds a program's loops: its libraries, its crashes, its cores, a look from outside.

Each case compiles a program of a few lines, runs it under `hiroba run` and checks status, output
and the lines of hiroba.

    process_runs.py --hiroba build/bin/hiroba [--only core]
"""
import argparse
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from clean_environment import clean_environment  # noqa: E402
from signals_taken import take_as_from_a_terminal  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 300  # of wall time: a hang, and no busy machine
HEADERS = "".join(f"#include <{name}.h>\n" for name in (
    "omp", "dlfcn", "errno", "pthread", "signal", "stdio", "stdlib", "string", "unistd"))


class Bench:
    """A folder to build in, and how programs are built and run there."""

    def __init__(self, hiroba, folder, nodes, variables=None):
        self.hiroba, self.folder, self.nodes = hiroba, pathlib.Path(folder), nodes
        self.variables = variables or {}  # of every run

    def build(self, name, source, *flags):
        target = self.folder / name
        text = HEADERS + source
        subprocess.run(["gcc", "-g", "-O1", "-w", "-x", "c", "-", "-o", str(target), *flags],
                       input=text.encode(), check=True, cwd=self.folder)
        return target

    def command(self, program, *arguments, options=(), threads=1):
        return [self.hiroba, "run", "-n", str(self.nodes), "--threads", str(threads), *options, "--", str(program),
                *arguments]

    def run(self, program, *arguments, before=None, options=(), threads=1, stdin=subprocess.DEVNULL, **variables):
        environment = clean_environment("OMP_")
        environment.update(self.variables)
        environment.update(variables, LD_LIBRARY_PATH=str(self.folder))
        command = self.command(program, *arguments, options=options, threads=threads)
        done = subprocess.run(command, env=environment, text=True, stdin=stdin, capture_output=True, cwd=self.folder,
                              timeout=LIMIT_SECONDS, preexec_fn=before)
        return done.returncode, done.stdout, done.stderr


def expect(run, status, out, err):
    """`err`: an expression that one line, and one alone, of standard error must hold."""
    got, stdout, stderr = run
    assert got == status, f"status {got}, not {status}: {stderr[-400:]}"
    assert stdout == out, f"output {stdout!r}, not {out!r}"
    if err:
        lines = [line for line in stderr.splitlines() if re.search(err, line)]
        assert len(lines) == 1, f"{len(lines)} lines like {err!r}: {stderr[-400:]}"


def library_state(bench):
    """Variables of a user's library are shared; OpenMP used inside a library alone works."""
    bench.build("libwork.so", """
        int counter; static int table[4096]; static int* at;
        int work(void) {
        #pragma omp parallel
            {
        #pragma omp critical
            { counter += 1; if (!at) at = malloc(4); *at += 1; }
            table[omp_get_thread_num()] = omp_get_thread_num() + 1;
            }
            int sum = 0;
            for (int i = 0; i < 4096; ++i) sum += table[i];
            return sum * 10000 + counter * 100 + *at;
        }""", "-shared", "-fPIC", "-fopenmp")
    program = bench.build("uses", """
        int work(void); extern int counter;
        int main(void) { int w = work(); printf("%d %d\\n", w, counter); }""", "-L.", "-lwork")
    n = bench.nodes
    expect(bench.run(program), 0, f"{n * (n + 1) // 2 * 10000 + n * 100 + n} {n}\n", "")


PLUG = """
    extern int puts(const char*);
    int answer = 42, filled[4096], started;
    static int* made;                 /* by the initializer, with malloc */
    static int* at = &answer;         /* relocated when it is loaded */
    extern int registered;            /* the program's */
    __attribute__((constructor)) static void start(void) {
        puts("initializer");
        made = malloc(sizeof *made); *made = 7; registered += 1; at = &started;
    #pragma omp parallel reduction(+ : started)
        started += 1;
    }
    int work(int n) {
        int sum = 0;
    #pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 4096; ++i) { filled[i] = i; sum += n * *made; }
    #pragma omp parallel
        { _Pragma("omp atomic") answer += 1; }
        for (int i = 0; i < 4096; ++i) sum += filled[i] != i;
        return sum + (at != &started);
    }
    __attribute__((destructor)) static void end(void) { puts("end"); }"""

PLUGS = """
    int registered;
    int main(void) {
        void* plug = dlopen("libplug.so", RTLD_NOW);
        if (!plug) { puts(dlerror()); return 1; }
        int* answer = dlsym(plug, "answer"); int* started = dlsym(plug, "started");
        int (*work)(int) = (int (*)(int))dlsym(plug, "work");
        int n = omp_get_max_threads(), far = 0, same = 0;
        printf("%d %d %d\\n", *started == n, registered, work(1));
        *answer = 1000;
    #pragma omp parallel reduction(+ : far, same)
        {
            far += *answer;
            same += (int*)dlsym(plug, "answer") == answer;
        }
        printf("%d %d %d\\n", far == 1000 * n, same == n, dlsym(plug, "nothing") == NULL);
        dlclose(plug);
        void* other = dlopen("./libother.so", RTLD_NOW | RTLD_GLOBAL);
        if (!other) { puts(dlerror()); return 1; }
        int (*twice)(int) = (int (*)(int))dlsym(other, "twice");
        int sum = 0;
    #pragma omp parallel reduction(+ : sum)
        sum += twice(omp_get_thread_num());
        printf("%d %d\\n", sum, work(2));
        void* broken = dlopen("./libbroken.so", RTLD_NOW);
        printf("%d %s\\n", broken == NULL, strstr(dlerror(), "absent_function") ? "absent" : "?");
    #pragma omp parallel reduction(+ : sum)
        sum += twice(1);
        printf("%d\\n", sum - 2 * n);
    }"""


def loading_after_the_start(bench):
    """A library opened in main is there on every node: variables, initializers once, regions of its
    own and in its initializers, needed libraries, another one after a failure."""
    for engine in ("uffd", "mprotect"):
        bench.build("libplug.so", PLUG, "-shared", "-fPIC", "-fopenmp")
        bench.build("libdeep.so", "int deep = 2;", "-shared", "-fPIC")
        bench.build("libother.so", "extern int deep; int twice(int n) { return deep * n; }",
                    "-shared", "-fPIC", "-L.", "-ldeep", "-Wl,-rpath,$ORIGIN")
        bench.build("libbroken.so", "void absent_function(void);"
                    "void* table[9] = {(void*)absent_function};", "-shared", "-fPIC")
        program = bench.build("plugs", PLUGS, "-fopenmp", "-rdynamic")
        n = bench.nodes
        expect(bench.run(program, HIROBA_FAULT_ENGINE=engine), 0,
               f"initializer\n1 1 28672\n1 1 1\n{n * (n - 1)} 57344\n1 absent\n"
               f"{n * (n - 1)}\nend\n", "")


def loading_elsewhere(bench):
    """In a region dlopen of something new ends the job; of what is there, or nowhere, it is as ever."""
    bench.build("libplug.so", "int answer = 42;", "-shared", "-fPIC")
    program = bench.build("plugs", """
        int main(void) {
            void* there = dlopen("libc.so.6", RTLD_NOW);
            void* self = dlopen(NULL, RTLD_NOW);
            void* plug = NULL;
            char text[200] = "";
        #pragma omp parallel
            if (omp_get_thread_num() == omp_get_num_threads() - 1) {
                plug = dlopen("libplug.so", RTLD_NOW);
                if (dlopen("libnowhere.so.7", RTLD_NOW) || dlopen("./nowhere.so", RTLD_NOW)) abort();
                strcpy(text, dlerror());
            }
            printf("%d %d %d %d %d\\n", there != NULL, self != NULL, plug != NULL,
                   strstr(text, "No such file") != NULL, dlerror() == NULL);
        }""", "-fopenmp", "-Wl,-rpath,$ORIGIN")
    expect(bench.run(program), 78, "", r"dlopen of libplug.so in a parallel region")
    expect(bench.run(program, LD_PRELOAD=str(bench.folder / "libplug.so")), 0, "1 1 1 1 1\n", "")
    for name, status in (("libstdc++.so.6", 78), ("./libplug.so", 78), ("libnowhere.so.7", 0)):
        opens = bench.build("opens", f"""
            int main(void) {{
            #pragma omp parallel
                if (omp_get_thread_num() == 0) dlopen("{name}", RTLD_NOW);
            }}""", "-fopenmp")
        expect(bench.run(opens), status, "", rf"dlopen of {re.escape(name)} in a parallel region" if status else "")


def second_runtime(bench):
    """Another OpenMP runtime, whatever its name, is refused before main."""
    bench.build("libother.so", "void __kmpc_fork_call(void) {} int other(void) { return 1; }",
                "-shared", "-fPIC")
    program = bench.build("both", """
        int other(void); int main(void) { puts("main"); return other(); }""", "-fopenmp", "-L.",
                          "-lother")
    expect(bench.run(program), 78, "", r"libother\.so is a second OpenMP runtime")


def memory_group():
    """A folder for a control group with a memory limit, below this process's, and its file."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            roots = ["/sys/fs/cgroup", "memory.max"]
        elif "memory" in controllers.split(","):
            roots = ["/sys/fs/cgroup/memory", "memory.limit_in_bytes"]
        else:
            continue
        folder = pathlib.Path(roots[0] + path) / f"hiroba-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / roots[1]).exists():
            return folder, roots[1]
        folder.rmdir()
    return None, None


def control_group(bench):
    """What the control group would not bear is refused, with its limit. Needs root."""
    folder, limit = memory_group()
    if folder is None:
        print("     control_group: no group with a memory limit can be made here")
        return
    try:
        (folder / limit).write_text(str(4 << 30))
        program = bench.build("greedy", """
            int main() {
                void* block = malloc((size_t)3 << 30);
                printf("%d\\n", block == NULL);
                free(block);
            #pragma omp parallel
                {}
            }""", "-fopenmp")
        enter = lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))
        expect(bench.run(program, before=enter), 0, "1\n",
               r"malloc of 3221225472 bytes refused: .* of 4294967296 this node may use "
               r"\(limit of the control group\); use more nodes, or set HIROBA_MEMORY")
    finally:
        for _ in range(50):  # the last process may still be leaving
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def too_much_address_space(bench):
    """More blocks than a number of 32 bits counts: refused, before anything is placed in them."""
    program = bench.build("nothing", "int main() { return 0; }", "-fopenmp", "-Wl,--no-as-needed")
    status, out, err = bench.run(program, HIROBA_HEAP="32T", HIROBA_FAULT_ENGINE="uffd")
    # Each node that is not ended before says so.
    told = re.findall(r"^hiroba\[\d@.*HIROBA_HEAP is 35184372088832: on \d+ nodes that is more than "
                      r"4294967295 blocks of \d+ bytes$", err, re.MULTILINE)
    assert (status, out) == (64, "") and told, f"status {status}: {err[-400:]}"


def refused_calls(bench):
    """What would corrupt or hang is a line and a status."""
    forks = bench.build("forks", """
        int main(void) { errno = 0; int p = fork(); printf("%d %d\\n", p, errno == ENOSYS); }""",
                        "-fopenmp")
    expect(bench.run(forks), 0, "-1 1\n", r"fork on several nodes.*posix_spawn")
    inside = bench.build("inside", """
        int main(void) {
        #pragma omp parallel
            if (omp_get_thread_num() == omp_get_num_threads() - 1) fork();
            puts("not reached");
        }""", "-fopenmp")
    expect(bench.run(inside), 78, "", r"hiroba\[\d+@.*fork in a parallel region.*posix_spawn")
    hides = bench.build("hides", """
        int main(void) { errno = 0; int p = daemon(1, 1); printf("%d %d\\n", p, errno == ENOSYS); }""",
                        "-fopenmp")
    expect(bench.run(hides), 0, "-1 1\n", r"fork on several nodes.*posix_spawn")
    leaves = bench.build("leaves", """
        int main(void) {
        #pragma omp parallel
            if (omp_get_thread_num() == 1) pthread_exit(NULL);
        }""", "-fopenmp")
    expect(bench.run(leaves), 78, "", r"hiroba\[1@.*pthread_exit in a thread of a parallel region")
    main_leaves = bench.build("main_leaves", """
        int main(void) {
        #pragma omp parallel
            if (omp_get_thread_num() == 0) pthread_exit(NULL);
        }""", "-fopenmp")
    expect(bench.run(main_leaves), 78, "", r"hiroba\[0@.*pthread_exit in a thread of a parallel region")
    replaces = bench.build("replaces", """
        int main(void) {
        #pragma omp parallel
            if (omp_get_thread_num() == 1) execl("/bin/true", "true", NULL);
        }""", "-fopenmp")
    expect(bench.run(replaces), 78, "", r"hiroba\[1@.*exec in a parallel region")


CRASH = """
    __attribute__((noinline)) void wild(long at) { *(volatile int*)at = 1; puts("never"); }
    __attribute__((noinline)) int deep(volatile char* up) {
        volatile char here[4096]; here[7] = up[0]; return deep(here) + here[7]; }
    int main(int count, char** words) {
        long* data = malloc(64 << 20);
    #pragma omp parallel for
        for (long i = 0; i < 8 << 20; ++i) data[i] = i;
        int who = atoi(words[2]);
    #pragma omp parallel
        {
    #pragma omp barrier
            if (omp_get_thread_num() == who) {
                if (words[1][0] == 'w') wild(16);
                if (words[1][0] == 'd') { char c = 0; return deep(&c); }
                if (words[1][0] == 'a') abort();
            }
    #pragma omp barrier
        }
    }"""


def core_files(bench):
    """A crashed node leaves a core that is small, written before a user gives up, and good for a backtrace."""
    if pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        print("     core files: skipped, core_pattern sends them elsewhere")
        return
    program = bench.build("crash", CRASH.replace("return deep(&c)", "deep(&c)"), "-fopenmp")
    unlimited = lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    for engine in ("uffd", "mprotect"):
        for how, who, status, line, function in (
                ("wild", "0", 139, "rank 0 .*signal 11", "wild"),
                ("wild", "1", 139, "rank 1 .*signal 11", "wild"),
                ("abort", "0", 134, "rank 0 .*signal 6", "main")):
            begin = time.monotonic()
            expect(bench.run(program, how, who, before=unlimited, HIROBA_FAULT_ENGINE=engine),
                   status, "", line)
            seconds = time.monotonic() - begin
            core = bench.folder / "core"
            bytes_in_all = core.stat().st_size
            trace = subprocess.run(["gdb", "-batch", "-ex", "bt", str(program), str(core)],
                                   capture_output=True, text=True, timeout=LIMIT_SECONDS).stdout
            core.unlink()
            assert seconds < 120, f"{engine} {how}: {seconds:.1f} s"
            assert bytes_in_all < 100 << 20, f"{engine} {how}: a core of {bytes_in_all} bytes"
            frames = re.findall(r"^#\d+ .*", trace, re.MULTILINE)
            last = "main (" if who == "0" else "main._omp_fn"
            assert any(function in f for f in frames) and any(last in f for f in frames), trace


CORE = """
    static long* half[2];
    int main(void) {
        long* data = malloc(16 << 20);
        long* beside = malloc(1 << 20);
        beside[5] = 5005;
    #pragma omp parallel
        {
            int me = omp_get_thread_num();
            half[me] = data + me * (1 << 20);
            for (long i = 0; i < 1 << 20; ++i) half[me][i] = i + 1000000 * me;
    #pragma omp barrier
            if (me == 1) *(volatile long*)16 = half[1][77] + beside[5];
    #pragma omp barrier
        }
    }"""


def core_with_heap(bench):
    """A core of `hiroba run --core` has what its node had of the heap, whatever the user's filter and soft limit are; else it
    has not."""
    if pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        print("     cores with heaps: skipped, core_pattern sends them elsewhere")
        return
    program = bench.build("heap_in_core", CORE, "-fopenmp")
    def before():
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.RLIM_INFINITY))
        pathlib.Path("/proc/self/coredump_filter").write_text("0x31")
    core = bench.folder / "core"
    for engine in ("uffd", "mprotect"):
        expect(bench.run(program, before=before, HIROBA_FAULT_ENGINE=engine, options=["--core"]), 139, "",
               "rank 1 .*signal 11")
        said = subprocess.run(["gdb", "-batch", "-ex", "print half[1][77]", "-ex", "print half[1][1048575]", "-ex",
                               "print (char)beside[5] + 5000", str(program), str(core)], capture_output=True, text=True,
                              timeout=LIMIT_SECONDS)
        size = core.stat().st_blocks * 512
        core.unlink()
        assert "= 1000077" in said.stdout and "= 2048575" in said.stdout, f"{engine}: {said.stdout[-800:]}{said.stderr}"
        assert 8 << 20 < size < 100 << 20, f"{engine}: a core of {size} bytes"
        expect(bench.run(program, before=before, HIROBA_FAULT_ENGINE=engine), 139, "", "rank 1 .*signal 11")
        assert not core.exists(), "a core was written that nobody asked for"


def stack_overflow(bench):
    """It is a line that names the setting, and SIGSEGV."""
    program = bench.build("overflow", CRASH.replace("return deep(&c)", "deep(&c)"), "-fopenmp")
    for engine in ("uffd", "mprotect"):
        for who in ("0", "1"):
            expect(bench.run(program, "deep", who, HIROBA_FAULT_ENGINE=engine), 139, "",
                   rf"hiroba\[{who}@.*stack overflow.*OMP_STACKSIZE")


WAITS = """
    static volatile int caught;
    static void on_user(int number) { caught = 1; }
    int main(int count, char** words) {
        if (count > 1) signal(SIGUSR1, on_user);
    #pragma omp parallel
        {
            if (omp_get_thread_num() == 0) {
                puts("ready"); fflush(stdout);
                if (count > 1) while (!caught) usleep(1000);
                else getchar();
            }
    #pragma omp barrier
        }
        puts(caught ? "caught" : "read");
    }"""


def ask_until(ask, answered):
    """Asks again now and then."""
    while not answered.wait(3):
        ask()


class Job:
    """A job that waits to be looked at; it ends when its input does."""

    def __init__(self, bench, *arguments, **variables):
        program = bench.build("waits", WAITS, "-fopenmp")
        self.process = subprocess.Popen(bench.command(program, *arguments), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=os.environ | variables)
        assert self.process.stdout.readline() == "ready\n"

    def read_stacks(self, nodes, ask):
        """Lines of standard error up to the last thread's of the last node, within the limit.

        On a full machine the last node may come to the barrier only behind the first look: it asks
        again.
        """
        text = ""
        ask()
        guard = threading.Timer(LIMIT_SECONDS, self.process.kill)
        guard.start()
        read = threading.Event()
        threading.Thread(target=ask_until, args=(ask, read), daemon=True).start()
        while not (f"rank {nodes - 1}, thread" in text and "waits for the other nodes at a barrier"
                   in text.split(f"rank {nodes - 1}, thread")[-1]):
            line = self.process.stderr.readline()
            if not line:
                read.set()
                guard.cancel()
                raise AssertionError(f"the job ended, or did not say so in {LIMIT_SECONDS} s: {text}")
            text += line
        read.set()
        guard.cancel()
        return text

    def finish(self):
        out, err = self.process.communicate(timeout=LIMIT_SECONDS)
        return self.process.returncode, out, err


def taken_pages(bench):
    """A thread lives on when the kernel takes away the mappings of its TLS and of its stack, as where
    memory is short."""
    source = (ROOT / "test/cluster/programs/taken_pages.c").read_text()
    program = bench.build("taken_pages", source, "-fopenmp", "-pthread")
    for engine in ("uffd", "mprotect"):
        expect(bench.run(program, HIROBA_FAULT_ENGINE=engine), 0, "right\n", "")


def stacks(bench):
    """`hiroba stacks` and SIGUSR1 show every thread and what it waits for; the job goes on."""
    job = Job(bench)
    by_command = lambda: subprocess.run([bench.hiroba, "stacks", str(job.process.pid)],
                                        timeout=LIMIT_SECONDS, check=True)
    by_signal = lambda: job.process.send_signal(signal.SIGUSR1)
    for ask in (by_command, by_signal, by_signal):
        text = job.read_stacks(bench.nodes, ask)
        assert re.search(r"^rank 0, thread \d+: runs\n(  #.*\n)*.*getc.*\n(  #.*\n)*"
                         r".* main._omp_fn.* \(waits\)", text, re.MULTILINE), text
    status, out, err = job.finish()
    assert (status, out) == (0, "read\n"), f"{status} {out} {err[-300:]}"
    wrong = subprocess.run([bench.hiroba, "stacks", str(os.getpid())], capture_output=True,
                           text=True, timeout=LIMIT_SECONDS)
    assert wrong.returncode == 64 and "is no process of hiroba run" in wrong.stderr


def stillness(bench):
    """A job in which nothing runs says once where its threads wait, and goes on; one that paces itself does not."""
    job = Job(bench, HIROBA_STILL="2")
    line = job.process.stderr.readline()
    assert re.match(r"hiroba: nothing has run for a while: rank 0, thread \d+ waits in \w*getc\w* at "
                    r"\S+:\d+ \(main._omp_fn.0\); rank 1, thread \d+ waits for the other nodes at a "
                    r"barrier at <stdin>:\d+ \(main._omp_fn.0\)", line), line
    assert job.finish() == (0, "read\n", "")
    paced = bench.build("paced", "int main(void) { for (int i = 0; i < 5; ++i) usleep(900000); }", "-fopenmp")
    _, _, err = bench.run(paced, HIROBA_STILL="2")
    assert "nothing has run" not in err, err


def user_signal_of_the_program(bench):
    """A program that catches SIGUSR1 gets it."""
    job = Job(bench, "catches")
    os.kill(job.process.pid, signal.SIGUSR1)
    assert job.finish() == (0, "caught\n", "")


def debugger(bench):
    """With .gdbinit a debugger does not stop at the signals that bring pages in."""
    program = bench.build("faults", """
        int main(void) {
            long* data = calloc(1 << 20, sizeof *data), sum = 0;
            puts("ready"); fflush(stdout); getchar();
            for (int round = 0; round < 5; ++round)
        #pragma omp parallel for reduction(+ : sum)
                for (long i = 0; i < 1 << 20; ++i) sum += data[i] += omp_get_thread_num();
            printf("%d\\n", sum > 0);
        }""", "-fopenmp")
    job = subprocess.Popen(bench.command(program), stdin=subprocess.PIPE, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert job.stdout.readline() == "ready\n"
    children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    gdb = subprocess.Popen(["gdb", "-nx", "-batch", "-x", str(ROOT / ".gdbinit"), "-p", children[-1],
                            "-ex", "echo attached\\n", "-ex", "continue"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while "attached" not in gdb.stdout.readline():
        pass
    out, err = job.communicate(timeout=LIMIT_SECONDS)
    seen = gdb.communicate(timeout=LIMIT_SECONDS)[0]
    assert (job.returncode, out) == (0, "1\n"), f"{job.returncode} {out} {err[-300:]} {seen}"
    assert "exited normally" in seen and "received signal" not in seen, seen


def watching(bench):
    """HIROBA_LOG tells what was chosen, once a job; what was made global, once an object."""
    program = bench.build("quiet", """
        int main(void) {
            int n = 0;
        #pragma omp parallel reduction(+ : n)
            n += 1;
            printf("%d\\n", n);
        }""", "-fopenmp")
    assert bench.run(program) == (0, f"{bench.nodes}\n", "")
    status, out, told = bench.run(program, HIROBA_LOG="info,omp=debug,dsm=trace")
    assert (status, out) == (0, f"{bench.nodes}\n"), told[-400:]
    assert re.search(r"hiroba\[1@.*dsm\.fault 0x", told), told[-400:]
    for line, times in ((rf"abi info: {bench.nodes} nodes of 1 threads, provider ", 1),
                        (r"dsm info: fault engine (uffd|mprotect): .", 1),
                        (r"omp debug: \S+/quiet: \d+ atomics", bench.nodes),
                        (r"abi debug", 0), (r"omp\.fork", 0)):
        found = len(re.findall(line, told))
        assert found == times, f"{line}: {found} times in {told[:2000]}"


CASES = [library_state, loading_after_the_start, loading_elsewhere, second_runtime, control_group,
         too_much_address_space, refused_calls, core_files, core_with_heap,
         stack_overflow, taken_pages, stacks, stillness, user_signal_of_the_program, debugger,
         watching]


def main(cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--nodes", type=int, default=2)
    options = parser.parse_args()
    take_as_from_a_terminal()
    failed = 0
    for case in [one for one in cases if options.only in one.__name__]:
        with tempfile.TemporaryDirectory(prefix="process") as folder:
            folder = pathlib.Path(folder).resolve()
            try:
                case(Bench(str(pathlib.Path(options.hiroba).resolve()), folder, options.nodes))
                print(f"ok   {case.__name__}", flush=True)
            except (AssertionError, subprocess.TimeoutExpired) as wrong:
                failed += 1
                print(f"FAIL {case.__name__}: {wrong}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(CASES))
