#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What an operator does to a job, and what the system denies it: a terminal that goes away, signals
for single nodes, limits of processes, calls that are refused.

    operator_runs.py --hiroba build/bin/hiroba [--only hangup] [--nodes 2]
"""
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from kill_runs import children, is_alive  # noqa: E402
from process_runs import LIMIT_SECONDS, expect, main  # noqa: E402

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
LIMIT_SECONDS = 300  # of wall time: a hang, and no busy machine
END_SECONDS = 60  # of wall time: a job that goes on, and no busy machine
SPIN = """
    int main(void) {
        puts("ready"); fflush(stdout);
        for (;;)
    #pragma omp parallel
            usleep(100);
    }"""


def build_file(bench, name):
    target = bench.folder / name
    subprocess.run(["gcc", "-g", "-O1", "-fopenmp", "-Wall", "-Wextra", str(PROGRAMS / f"{name}.c"), "-o",
                    str(target)], check=True)
    return target


def wait_until(what, seconds):
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# --- a terminal that goes away -------------------------------------------------------------------


def on_terminal(command):
    """Starts `command` as the leader of a session on a terminal; its process and the master."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    text = b""
    while b"ready" not in text:
        text += os.read(master, 100)
    return pid, master


def end_of(pid, seconds):
    """How the child ended; None if it did not: then it is killed."""
    status = []

    def ended():
        got, how = os.waitpid(pid, os.WNOHANG)
        if got:
            status.append(os.waitstatus_to_exitcode(how))
        return bool(got)
    if wait_until(ended, seconds):
        return status[0]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def hang_up(command, program):
    """Status of the session's leader after its terminal has gone; nothing of the job is left."""
    pid, master = on_terminal(command)
    nodes = [one for child in [pid, *children(pid)] for one in [child, *children(child)]
             if is_alive(one, program)]
    assert nodes, "no node was found"
    os.close(master)
    status = end_of(pid, END_SECONDS)
    assert wait_until(lambda: not any(is_alive(one, program) for one in nodes), END_SECONDS), \
        f"nodes {nodes} are left"
    return status


def hangup(bench):
    """A terminal that goes away ends the job: the kernel tells the leader of its session alone,
    be that the launcher or a shell that waits for it. The bare program dies of SIGHUP."""
    program = bench.build("spin", SPIN, "-fopenmp")
    assert hang_up([str(program)], program) == -signal.SIGHUP
    for nodes in (1, bench.nodes):
        command = [bench.hiroba, "run", "-n", str(nodes), "--threads", "1", str(program)]
        status = hang_up(command, program)
        assert status == 128 + signal.SIGHUP, f"{nodes} nodes: status {status}"
        hang_up(["/bin/sh", "-c", f"{' '.join(command)}; exit 0"], program)


def hangup_handled(bench):
    """A program that handles SIGHUP gets it once, and goes on."""
    program = bench.build("counts", """
        static volatile int hups;
        static void on_hup(int n) { hups += 1; }
        int main(int argc, char** argv) {
            signal(SIGHUP, on_hup);
            puts("ready"); fflush(stdout);
            for (int i = 0; i < 3000 && !hups; ++i) usleep(1000);
            usleep(100000);
            FILE* file = fopen(argv[1], "w"); fprintf(file, "%d", hups); fclose(file);
        }""", "-fopenmp")
    for command in ([str(program)], bench.command(program)):
        told = bench.folder / "told"
        pid, master = on_terminal([*command, str(told)])
        os.close(master)
        assert end_of(pid, 10) == 0
        assert told.read_text() == "1", told.read_text()
        told.unlink()


# --- signals for a node --------------------------------------------------------------------------


def signals_of_nodes(bench):
    """What a node asks for itself reaches it: handlers run there, and default actions end the job."""
    program = build_file(bench, "worker_signals")
    statuses = {"terminate": 15, "alarm": 14, "kill": 10, "timer": 12, "interval": 14,
                "processor": 24, "profile": 27, "queue": 10, "thread": 10, "raise": 10}
    def run(*words):
        """Without the line that says that a limit or a timer is set on one node alone."""
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        done.stderr = re.sub(r"hiroba\[1@.*\]: set(rlimit|itimer)\(\)[^\n]* in a parallel region .*\n", "", done.stderr)
        return done
    for threads in ("1", "2"):
        for word, number in statuses.items():
            command = [bench.hiroba, "run", "-n", str(bench.nodes), "--threads", threads, str(program)]
            done = run(*command, word, "handled")
            assert (done.returncode, done.stderr) == (0, ""), f"{word}: {done}"
            assert done.stdout == f"{word}: signal {number}, 4096 marks\n", f"{word}: {done}"
            done = run(*command, word)
            assert (done.returncode, done.stdout) == (128 + number, ""), f"{word}: {done}"
            line = rf"hiroba: rank {bench.nodes - 1} \(process \d+\) was killed by signal {number} "
            assert re.match(line, done.stderr) and done.stderr.count("\n") == 1, f"{word}: {done}"


def limit_of_processor_time(bench):
    """A limit that the job was started with ends it by SIGXCPU, whichever node comes to it, as bare."""
    program = bench.build("computes", """
        int main(int argc, char** argv) {
            int last = argc > 1;
        #pragma omp parallel
            if (omp_get_thread_num() == last * (omp_get_num_threads() - 1))
                for (volatile long i = 0;; ++i) { }
        }""", "-fopenmp")
    limited = ["prlimit", "--cpu=1:20"]
    assert subprocess.run([*limited, str(program)], timeout=LIMIT_SECONDS).returncode == -signal.SIGXCPU
    for rank, words in ((0, []), (bench.nodes - 1, ["last"])):
        command = [bench.hiroba, "run", "-n", str(bench.nodes), "--threads", "1", str(program), *words]
        done = subprocess.run([*limited, *command], capture_output=True, text=True, timeout=LIMIT_SECONDS)
        assert done.returncode == 128 + signal.SIGXCPU, f"rank {rank}: {done}"
        assert re.match(rf"hiroba: rank {rank} \(process \d+\) was killed by signal {int(signal.SIGXCPU)} ",
                        done.stderr), f"rank {rank}: {done}"


def kill_of_a_node(bench):
    """kill PID of any node: its handler runs, also between regions; else the job ends by it."""
    program = bench.build("waits", """
        static volatile int got[64 * 512];
        static int self;
    #pragma omp threadprivate(self)
        static void on_user(int n) { got[self * 512] = n; }
        int main(int argc, char** argv) {
            if (argc > 1) signal(SIGUSR2, on_user);
    #pragma omp parallel
            self = omp_get_thread_num();
            puts("ready"); fflush(stdout);
            getchar();
            int sum = 0;
            usleep(100000);
    #pragma omp parallel reduction(+ : sum)
            sum += got[self * 512];
            printf("%d\\n", sum);
        }""", "-fopenmp")
    for rank in range(bench.nodes):
        for words, number, wanted in ((["handled"], signal.SIGUSR2, 0), ([], signal.SIGTERM, 143)):
            job = subprocess.Popen([*bench.command(program), *words], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert job.stdout.readline() == "ready\n"
            time.sleep(0.05)
            os.kill(children(job.pid)[rank], number)
            time.sleep(0.1)
            out, err = job.communicate("\n", timeout=END_SECONDS)
            assert job.returncode == wanted, f"rank {rank}: {job.returncode} {out} {err}"
            if words:
                assert (out, err) == (f"{int(signal.SIGUSR2)}\n", ""), f"rank {rank}: {out} {err}"


def interrupted_in_a_fault(bench):
    """One SIGINT ends a program that reads what a node that stands still has written, for which the
    thread waits within a fault; one that handles the signal goes on waiting, as a slow read would."""
    program = bench.build("waits_in_fault", """
        static double values[1 << 16];
        static volatile int stopped;
        static void on_interrupt(int n) { _exit(7); }
        int main(int argc, char** argv) {
            if (argc > 1) signal(SIGINT, on_interrupt);
        #pragma omp parallel num_threads(2)
            if (omp_get_thread_num() == 1)
                for (int i = 0; i < 1 << 16; ++i) values[i] = i;
            puts("ready"); fflush(stdout);
            getchar();
            double sum = 0;
            for (int i = 0; i < 1 << 16; ++i) sum += values[i];
            printf("%g\\n", sum);
        }""", "-fopenmp")
    for words, wanted in (([], 128 + signal.SIGINT), (["handles"], None)):
        job = subprocess.Popen([bench.hiroba, "run", "-n", "2", "--threads", "1", str(program), *words],
                               stdin=subprocess.PIPE, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True,
                               env={**os.environ, "HIROBA_PROVIDER": "udp", "HIROBA_PEER_TIMEOUT": "0"})
        try:
            assert job.stdout.readline() == "ready\n"
            nodes = children(job.pid)
            assert hears_interrupts(nodes[0])
            os.kill(nodes[1], signal.SIGSTOP)
            # A thread that computes is stopped at its next turn, and could serve a read before.
            assert wait_until(lambda: is_stopped(nodes[1]), 10), "it does not stop"
            job.stdin.write("\n")
            job.stdin.flush()
            assert wait_until(lambda: not hears_interrupts(nodes[0]), 10), "it does not wait in a fault"
            os.kill(job.pid, signal.SIGINT)
            if wanted is None:
                time.sleep(0.5)
                assert job.poll() is None, f"it ended with {job.returncode}"
                continue
            assert wait_until(lambda: job.poll() is not None, END_SECONDS), "it goes on"
            assert job.returncode == wanted, f"{job.returncode} {job.stderr.read()}"
            assert "rank 0" in (told := job.stderr.read()) and "signal 2" in told, told
        finally:
            job.kill()
            job.communicate()


def is_stopped(pid):
    return all("(stopped)" in (task / "status").read_text() for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def hears_interrupts(pid):
    """Whether some thread can take SIGINT: that of main does, but within a fault."""
    masks = [re.search(r"SigBlk:\s*(\w+)", (task / "status").read_text())[1]
             for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    return any(int(mask, 16) >> (signal.SIGINT - 1) & 1 == 0 for mask in masks)


# --- what the system denies ----------------------------------------------------------------------


def brief(bench):
    return bench.build("brief", """
        int main(void) {
            int n = 0;
        #pragma omp parallel reduction(+ : n)
            n += 1;
            printf("%d\\n", n);
        }""", "-fopenmp")


def refused_or_right(run, right, pattern, what):
    """True when it was refused: status 78, and nothing but lines of hiroba, one with the cure."""
    if run.returncode == 0:
        assert (run.stdout, run.stderr) == (right, ""), f"{what}: {run}"
        return False
    lines = run.stderr.splitlines()
    assert run.returncode == 78 and lines and all(one.startswith("hiroba") for one in lines), f"{what}: {run}"
    assert any(re.search(pattern, one) for one in lines), f"{what}: {run.stderr}"
    return True


def few_processes(bench):
    """Whatever number of processes and threads a user may have: a right run, or 78 and the limit's name."""
    program = brief(bench)
    if os.getuid() != 0:
        return print("skip few_processes: limits of another user need root")
    for folder in (bench.folder, program):
        folder.chmod(0o755)
    nobody = 65534
    for provider in ("shm", "udp"):
        for threads in (1, 2):
            refused = 0
            for limit in range(2, 26):
                words = [bench.hiroba, "run", "-n", "2", "--threads", str(threads), str(program)]
                done = subprocess.run(
                    ["prlimit", f"--nproc={limit}:{limit}", "setpriv", f"--reuid={nobody}", f"--regid={nobody}",
                     "--clear-groups", *words], capture_output=True, text=True, timeout=LIMIT_SECONDS,
                    env={**os.environ, "HIROBA_PROVIDER": provider, "HIROBA_LOSS_GRACE": "100"})
                refused += refused_or_right(done, f"{2 * threads}\n", r"[Rr]aise ulimit -u",
                                            f"{limit} processes")
            assert 3 < refused < 24, f"refused {refused} of 24 limits"


def group_of_tasks():
    """The folder of a new control group that counts processes and threads; None if none can be made."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "pids"):
            continue
        root = "/sys/fs/cgroup/pids" if controllers else "/sys/fs/cgroup"
        folder = pathlib.Path(root + path) / f"hiroba-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / "pids.max").exists():
            return folder
        folder.rmdir()
    return None


def small_control_group(bench):
    """However few processes and threads a container may have: a right run, or 78 and the limit's name."""
    program = brief(bench)
    folder = group_of_tasks()
    if folder is None:
        return print("skip small_control_group: no group that counts processes can be made here")
    try:
        for provider, threads in (("shm", 1), ("udp", 2)):
            refused = []
            for limit in range(1, 30):
                (folder / "pids.max").write_text(str(limit))
                done = subprocess.run(
                    [bench.hiroba, "run", "-n", "2", "--threads", str(threads), str(program)],
                    capture_output=True, text=True, timeout=LIMIT_SECONDS, env={**os.environ, "HIROBA_PROVIDER": provider},
                    preexec_fn=lambda: (folder / "cgroup.procs").write_text(str(os.getpid())))
                if refused_or_right(done, f"{2 * threads}\n", r"pids\.max|pids-limit", f"{limit} tasks"):
                    refused.append(limit)
                assert wait_until(lambda: not (folder / "cgroup.procs").read_text(), END_SECONDS), "left"
            assert 1 in refused and max(refused) < 29, refused
    finally:
        folder.rmdir()


DENIED = {"madvise": 28, "rt_sigaction": 13, "sigaltstack": 131, "clone": 56, "clone3": 435, "prctl": 157,
          "prlimit64": 302, "getrandom": 318, "memfd_create": 319, "personality": 135, "socketpair": 53,
          "signalfd4": 289, "ftruncate": 77, "userfaultfd": 323, "eventfd2": 290}


def denied_calls(bench):
    """Each of these system calls denied as containers do it: a right run, or 78 and a line."""
    deny = build_file(bench, "deny")
    program = brief(bench)
    refused = set()
    for name, number in DENIED.items():
        done = subprocess.run([str(deny), str(number), "1", bench.hiroba, "run", "-n", "2", "--threads", "2",
                               str(program)], capture_output=True, text=True, timeout=LIMIT_SECONDS)
        assert done.returncode != 77, "no seccomp here"
        if refused_or_right(done, "4\n", r"seccomp|ulimit|container|refused", name):
            refused.add(name)
    assert {"madvise", "rt_sigaction", "sigaltstack", "clone3"} <= refused, refused


def denied_memory(bench):
    """Where memory's own call is denied the line says so, and advises nothing about sizes."""
    deny = build_file(bench, "deny")
    program = brief(bench)
    for error in ("1", "38"):  # EPERM, ENOSYS
        for provider in ("shm", "udp"):
            done = subprocess.run([str(deny), str(DENIED["memfd_create"]), error, bench.hiroba, "run", "-n", "2",
                                   "--threads", "1", str(program)], capture_output=True, text=True, timeout=LIMIT_SECONDS,
                                  env={**os.environ, "HIROBA_PROVIDER": provider})
            assert done.returncode == 78, done
            assert "memfd_create" in done.stderr and "allow it" in done.stderr, done.stderr
            assert "HIROBA_HEAP" not in done.stderr and "ulimit" not in done.stderr, done.stderr


def lines_that_help(bench):
    """The cause that is named is the one that is there."""
    program = brief(bench)
    def run(words, **more):
        return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_SECONDS, **more)
    job = [bench.hiroba, "run", "-n", "2", "--threads", "1"]
    little = run(["prlimit", "--data=2048000", *job, str(program)])
    assert little.returncode == 78 and "raise ulimit -d" in little.stderr, little
    assert "ulimit -v" not in little.stderr and "setuid" not in little.stderr, little
    own = bench.folder / "setuid"
    shutil.copy(program, own)
    own.chmod(0o4755)
    bits = run([*job, str(own)])
    assert bits.returncode == 78 and "without these bits" in bits.stderr, bits
    assert "personality" not in bits.stderr and len(bits.stderr.splitlines()) == 1, bits
    for value in ("0", "99999999999"):
        notices = run([*job, str(program)], env={**os.environ, "HIROBA_NOTICES": value})
        assert notices.returncode == 64, notices
        assert notices.stderr == f"hiroba: HIROBA_NOTICES={value}: must be a count from 1 to 1500.\n", notices
    cut = run([*job, "./two\nlines"])
    assert cut.returncode == 64 and len(cut.stderr.splitlines()) == 1 and "two\\x0alines" in cut.stderr, cut
    verbose = run([bench.hiroba, "run", "-v", "-n", "2", "--threads", "1", str(program)])
    assert verbose.stderr == "hiroba: this host: ranks 0 to 1, 1 thread a node, provider shm.\n", verbose
    nowhere = run([bench.hiroba, "run", "--hosts", "", str(program)])
    assert nowhere.returncode == 64 and "--hosts with a host" in nowhere.stderr, nowhere
    nested = run([*job, *job, str(program)])
    assert nested.returncode == 78 and "cannot fork" in nested.stderr, nested
    assert "ulimit -u" not in nested.stderr, nested
    if run(["unshare", "-n", "true"]).returncode == 0:
        alone = run(["unshare", "-n", *job, str(program)], env={**os.environ, "HIROBA_PROVIDER": "udp"})
        assert alone.returncode == 78 and "ip link set lo up" in alone.stderr, alone


def loopback_only(bench):
    """On one host provider udp can be reached from that host alone."""
    program = bench.build("spin", SPIN, "-fopenmp")
    job = subprocess.Popen(bench.command(program), stdout=subprocess.PIPE, text=True,
                           env={**os.environ, "HIROBA_PROVIDER": "udp"})
    try:
        assert job.stdout.readline() == "ready\n"
        sockets = set()
        for pid in children(job.pid):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                if (name := os.readlink(entry.path)).startswith("socket:["):
                    sockets.add(name[8:-1])
        bound = [line.split()[1].split(":")[0] for line in open("/proc/net/udp").read().splitlines()[1:]
                 if line.split()[9] in sockets and line.split()[2].endswith(":0000")]
        assert len(bound) == 2 * bench.nodes and set(bound) == {"0100007F"}, bound
    finally:
        job.kill()
        job.communicate()


# --- the end --------------------------------------------------------------------------------------


def streams_locked_at_the_end(bench):
    """A thread that has locked a stream, and sleeps or reads, keeps no node from ending; what the stream holds is
    written."""
    program = bench.build("locks", """
        int main(int count, char** words) {
            const int threads = omp_get_max_threads(), waits = count > 2;
            if (!strcmp(words[1], "line")) setvbuf(stdout, NULL, _IOLBF, 0);
            puts("begun");
        #pragma omp parallel
            {
                const int me = omp_get_thread_num();
                FILE* stream = NULL;
                char name[16];
                sprintf(name, "%d", me);
                if (!strcmp(words[1], "file")) stream = fopen(name, "w");
                else if (strcmp(words[1], "input")) { if (me == threads - 2) stream = stdout; }
                else if (me == 0) { ungetc(getchar(), stdin); stream = stdin; }
                if (stream) flockfile(stream);
                if (stream && stream != stdin) fputs("held", stream);
        #pragma omp barrier
                if (waits && me == threads - 1) { if (words[2][0] == '_') _exit(3); else exit(3); }
                if (waits && stream == stdin) while (getchar() != EOF);
                if (waits) for (;;) pause();
            }
            return 3;
        }""", "-fopenmp")
    files = [bench.folder / str(thread) for thread in range(2 * bench.nodes)]
    for how in ((), ("exit",)):
        expect(bench.run(program, "file", *how, threads=2), 3, "begun\n", "")
        assert [file.read_text() for file in files] == ["held"] * len(files), how
        for file in files:
            file.unlink()
    expect(bench.run(program, "file", "_exit", threads=2), 3, "begun\n", "")
    for buffered in ("full", "line"):
        expect(bench.run(program, buffered, "exit", threads=2), 3, "begun\nheld", "")
    reading, writing = os.pipe()
    os.write(writing, b"some")
    with open(reading, "rb") as source, open(writing, "wb"):
        expect(bench.run(program, "input", "exit", threads=2, stdin=source), 3, "begun\n", "")


def error_output_locked(bench):
    """Standard error that a thread has locked for good does not stop standard output, where both are one file."""
    program = bench.build("keeps", """
        int main(int count, char** words) {
            const int threads = omp_get_max_threads();
            if (count > 1) setvbuf(stdout, NULL, _IOLBF, 0);
            puts("begun");
        #pragma omp parallel
            if (omp_get_thread_num() == threads - 1) { flockfile(stderr); fputs("held ", stderr); }
        #pragma omp parallel for ordered schedule(static, 1)
            for (int i = 0; i < threads; ++i) {
        #pragma omp ordered
                printf("%d\\n", i);
            }
            return 3;
        }""", "-fopenmp")
    for words in ((), ("line",)):
        done = subprocess.run(bench.command(program, *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=LIMIT_SECONDS)
        expected = "begun\nheld " + "".join(f"{i}\n" for i in range(bench.nodes))
        assert (done.returncode, done.stdout) == (3, expected), done


CASES = [hangup, hangup_handled, signals_of_nodes, limit_of_processor_time, kill_of_a_node,
         interrupted_in_a_fault, few_processes, small_control_group, denied_calls, denied_memory, lines_that_help,
         loopback_only, streams_locked_at_the_end,
         error_output_locked]


if __name__ == "__main__":
    sys.exit(main(CASES))
