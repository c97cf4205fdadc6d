# SPDX-License-Identifier: BSD-3-Clause
"""What the cases of hosts_runs.py share: their programs, how a job over several hosts is started,
and what must be true of its end."""
import pathlib
import re
import subprocess
import time

from clean_environment import clean_environment

LIMIT_SECONDS = 300  # of wall time: a hang, and no busy machine
# Between hosts every small region costs round trips, and a busy machine makes each one long.
EXAMPLE_LIMIT_SECONDS = 200
END_SECONDS = 2.0  # in the quietest of some tries
LEFT_SECONDS = 20  # of wall time, where other work has the machine; nodes that miss a peer wait for 30
EXECUTE = "ip netns exec"

WAITS = """
    #include <omp.h>
    #include <unistd.h>
    int main(void) {
        int ends[2];
        char one;
        if (pipe(ends) != 0) return 1;
    #pragma omp parallel
        if (omp_get_thread_num() == omp_get_num_threads() - 1) one = read(ends[0], &one, 1);
    }"""

BUSY = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) {
    static double a[4096];
    for (long round = 0; round < 1000000000; ++round) {
#pragma omp parallel for
        for (int i = 0; i < 4096; ++i) a[i] += round + i;
        if (round == 2) { puts("under way"); fflush(stdout); }
    }
}
"""

# Nodes that ask nothing of each other, so that none of them misses another.
QUIET = r"""
#include <omp.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == 0) {
            puts("under way");
            fflush(stdout);
        }
        sleep(50);
    }
}
"""

# Regions for so long that a node can be stopped in the middle; says whether all had their effect.
LONG = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char** argv) {
    static long a[4096], sum, wanted;
    const time_t start = time(NULL);
    const int seconds = argc > 1 ? atoi(argv[1]) : 4;
    puts("under way");
    fflush(stdout);
    for (long round = 0; round == 0 || time(NULL) < start + seconds; ++round) {
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 4096; ++i) sum += a[i] += round ^ i;
        for (int i = 0; i < 4096; ++i) wanted += a[i];
    }
    puts(sum == wanted ? "all is there" : "something is lost");
}
"""

# The last of two threads, on the last host, says what would fill any pipe, and the job is over.
FLOOD = r"""
#include <omp.h>
#include <stdio.h>
int main(void) {
#pragma omp parallel
    if (omp_get_thread_num() == omp_get_num_threads() - 1)
        for (int i = 0; i < 1000000; ++i) printf("%09d\n", i);
}
"""

# The same of a program that every node enters: there no thread stands between node and host.
FLOOD_OF_NODE = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    if (atoi(getenv("HIROBA_JOB_RANK")) != 1) return 0;
    for (int i = 0; i < 1000000; ++i) printf("%09d\n", i);
}
"""

# So much of an array goes from node to node that what the network takes at once counts.
STREAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char** argv) {
    static double a[1 << 15];
    double sum = 0;
    struct timespec start, end;
    for (int round = 0; round < atoi(argv[1]); ++round) {
        if (round == 5) {  // the network changes meanwhile
            puts("under way");
            fflush(stdout);
            getchar();
        }
        if (round == 10) clock_gettime(CLOCK_MONOTONIC, &start);
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 1 << 15; ++i) sum += a[i] += round ^ i;
        for (int i = 0; i < 1 << 15; i += 512) a[i] += 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "seconds %.3f\n", (double)(end.tv_sec - start.tv_sec) +
                                          1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    printf("%.0f\n", sum);
}
"""

RACE = r"""
#include <omp.h>
#include <stdio.h>
int before[4096], racy, behind[4096];
int main(void) {
    for (int round = 0; round < 10; ++round) {
#pragma omp parallel
        racy = round * 100 + omp_get_thread_num() + 1;
    }
    puts("done");
    return before[0] + behind[0];
}
"""

FILES = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char** argv) {
    char line[256], where[4096];
    int lines = 0, sum = 0, seen = 0;
    FILE* const out = fopen(argv[1], "w");
    while (fgets(line, sizeof line, stdin)) { fprintf(out, "%d %s", ++lines, line); }
#pragma omp parallel reduction(+ : sum) reduction(+ : seen)
    {
        sum += omp_get_thread_num() + 1;
        seen += getenv("GIVEN") != NULL && strcmp(getenv("GIVEN"), "two words") == 0;
    }
    fprintf(out, "%d %d\n", sum, seen);
    fclose(out);
    const mode_t mask = umask(0);
    printf("%d lines in %s, umask %03o, argument %s\n", lines, getcwd(where, sizeof where),
           (unsigned)mask, argv[2]);
    return 5;
}
"""


def environment(**more):
    plain = clean_environment("OMP_", "GOMP_", "LD_", "SSH_")
    # The compiler's own runtime would spin for long where the machine has other work.
    return {**plain, "GOMP_SPINCOUNT": "1000", **more}


def without_counters(stderr):
    return re.split(rb"^counter +node 0", stderr, flags=re.MULTILINE)[0]


def regions(stderr):
    row = re.search(rb"^parallel_regions((?: +\d+)+)$", stderr, re.MULTILINE)
    return [int(n) for n in row.group(1).split()[:-1]] if row else []


class Bench:
    """What the cases share."""

    def __init__(self, options, hosts, folder):
        self.options, self.hosts, self.folder = options, hosts, folder
        self.hiroba = options.hiroba

    def compile(self, name, source):
        program = self.folder / name
        if not program.exists():
            subprocess.run(["gcc", "-O2", "-fopenmp", "-x", "c", "-", "-o", str(program)],
                           input=source.encode(), check=True)
        return program

    def spread(self, *counts):
        return ",".join(f"{name}:{count}" for name, count in zip(self.hosts.names, counts))

    def command(self, places, *words, execute=EXECUTE, hiroba=None):
        return self.hosts.at_home(hiroba or self.hiroba, "run", "--hosts", places,
                                  "--ssh", execute, *words)

    def run(self, command, stdin=b"", limit=LIMIT_SECONDS, **more):
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(**more), cwd=self.folder, timeout=limit)

    def left(self):
        """Processes on the hosts, once those that end had time to."""
        deadline = time.monotonic() + LEFT_SECONDS
        while True:
            found = [pid for name in [*self.hosts.names, self.hosts.home]
                     for pid in self.hosts.processes(name)]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.01)

    def nothing_left(self):
        if left := self.left():
            yield f"processes {left} are left"


def differences(bench, bare, got, nodes):
    if got.returncode != bare.returncode:
        yield f"status {got.returncode}, bare {bare.returncode}"
    if got.stdout != bare.stdout:
        yield f"standard output differs: {got.stdout[-300:]!r}, bare {bare.stdout[-300:]!r}"
    if without_counters(got.stderr) != bare.stderr:
        yield f"standard error differs: {got.stderr[-500:]!r}"
    part = regions(got.stderr)
    if len(part) != nodes or min(part, default=0) < 1:
        yield f"regions by node: {part}, of {nodes} nodes"
    yield from bench.nothing_left()


def example(bench, name, arguments, places, nodes, **more):
    program = [str(bench.options.examples / name), *arguments]
    bare = bench.run(program, OMP_NUM_THREADS=str(nodes), **more)
    got = bench.run(bench.command(places, "--threads", "1", *program), OMP_NUM_THREADS=str(nodes),
                    limit=EXAMPLE_LIMIT_SECONDS, HIROBA_STATS="1", **more)
    # What differs between two bare runs: time, and the order of a floating-point sum.
    timeless = re.compile(rb"(?:error|seconds) \S+")
    for done in (bare, got):
        done.stdout = timeless.sub(b"TIME", done.stdout)
    yield from differences(bench, bare, got, nodes)


def expect(bench, done, status, *patterns):
    """As many lines of hiroba as patterns, each matching, and the status."""
    if done.returncode != status:
        yield f"status {done.returncode}, wanted {status}"
    lines = [line for line in done.stderr.decode(errors="replace").splitlines()
             if line.startswith("hiroba")]
    if len(lines) != len(patterns) or not all(map(re.search, patterns, lines)):
        yield f"lines {lines}, wanted {patterns}"
    yield from bench.nothing_left()


def start_busy(bench, places, execute=EXECUTE, quiet=False, **more):
    program = bench.compile("quiet", QUIET) if quiet else bench.compile("busy", BUSY)
    job = subprocess.Popen(bench.command(places, "--threads", "1", str(program), execute=execute),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=environment(**more), cwd=bench.folder)
    if job.stdout.readline() != b"under way\n":
        job.kill()
        raise RuntimeError(f"the job did not start: {job.communicate()[1]!r}")
    return job


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def on_host(bench, index, agent):
    """Processes of a host: its agent, or its nodes."""
    return sorted(pid for pid in bench.hosts.processes(bench.hosts.names[index])
                  if (b"agent" in command_line(pid)) == agent)


def ends(bench, strike, status, pattern, limit=END_SECONDS, places=(1, 2), least=0.0, mend=lambda: None, **more):
    """A job is under way, `strike(job)` happens: it must be over with one line, and in time in one of three tries: other
    work on the machine delays some, a wait would delay all. `mend` undoes what was struck before the next."""
    for tries_left in (2, 1, 0):
        job = start_busy(bench, bench.spread(*places), **more)
        try:
            time.sleep(0.1)
            strike(job)
            start = time.monotonic()
            _, stderr = job.communicate(timeout=LIMIT_SECONDS)
            seconds = time.monotonic() - start
        finally:
            job.kill()
            job.wait()
        done = subprocess.CompletedProcess([], job.returncode, b"", stderr)
        yield from expect(bench, done, status, pattern)
        if seconds < least or (seconds > limit and tries_left == 0):
            yield f"over after {seconds:.2f} s, wanted {least} to {limit}"
        if seconds <= limit:
            return
        mend()


def launcher_of(job):
    """`ip netns exec` becomes the launcher."""
    return job.pid


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
    except OSError:
        return ""


def wrapper(bench, name, text):
    """A command in place of ssh that does `text` first; the host is $1."""
    script = bench.folder / name
    script.write_text("#!/bin/sh\nhost=$1; shift\n" + text +
                      "\nexec ip netns exec \"$host\" \"$@\"\n")
    script.chmod(0o755)
    return str(script)
