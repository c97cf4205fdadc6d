#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over several hosts: `hiroba run --hosts` between network namespaces.

A run of a program passes when its output is byte for byte that of the bare program, its status is
the same, every node took part, and no process is left on any host. Further cases kill a node, an
agent and a whole host, and check bad input. Exits with 77 where namespaces cannot be had.

    hosts_runs.py --hiroba build/bin/hiroba --examples build/examples         in every check
    hosts_runs.py ... --repeat 20 --only cg                                    longer
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import host_nets  # noqa: E402

SKIPPED = 77
LIMIT_SECONDS = 60
# Between hosts every small region costs round trips, and a busy machine makes each one long.
EXAMPLE_LIMIT_SECONDS = 200
END_SECONDS = 2.0
EXECUTE = "ip netns exec"

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
#include <stdio.h>
#include <unistd.h>
int main(void) {
    puts("under way");
    fflush(stdout);
#pragma omp parallel
    sleep(50);
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
    plain = {k: v for k, v in os.environ.items()
             if not k.startswith(("HIROBA_", "OMP_", "LD_", "SSH_"))}
    return {**plain, **more}


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
        deadline = time.monotonic() + END_SECONDS
        while True:
            found = [pid for name in [*self.hosts.names, self.hosts.home]
                     for pid in self.hosts.processes(name)]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.01)


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
    if left := bench.left():
        yield f"processes {left} are left"


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


def files(bench):
    """Standard input, environment, arguments, directory, umask, a file, and the status."""
    program = bench.compile("files", FILES)
    text = b"first\n" + b"x" * 200 + b"\nthird\n" * 30000
    results = []
    for name, command in [("bare", [str(program)]),
                          ("hosts", bench.command(bench.spread(1, 2), "--threads", "1",
                                                  str(program)))]:
        target = bench.folder / f"written_{name}"
        results.append(bench.run([*command, str(target), "two words"], text, GIVEN="two words",
                                 OMP_NUM_THREADS="3", HIROBA_STATS="1"))
    yield from differences(bench, *results, nodes=3)
    written = [(bench.folder / f"written_{name}").read_bytes() for name in ("bare", "hosts")]
    if written[0] != written[1] or len(written[0]) < 200000:
        yield f"the file differs: {written[1][-100:]!r}, bare {written[0][-100:]!r}"


def verbose(bench):
    """The device that leads to the peers is chosen and said, whatever else there is."""
    done = bench.run(bench.command(bench.spread(1, 1), "-v", "--threads", "1",
                                   str(bench.options.examples / "heat"), "32", "3"))
    for i, name in enumerate(bench.hosts.names[:2]):
        line = f"hiroba: host {name}: rank {i}, network device 10.77.0.{i + 1} (eth0)"
        if line not in done.stderr.decode():
            yield f"no line \"{line}\": {done.stderr.decode()}"
    forced = bench.run(bench.command(bench.spread(1, 1), "-v", "true"), HIROBA_NET="nosuch0")
    yield from expect(bench, forced, 64, r"host \S+n[01]: HIROBA_NET=nosuch0: no device of this host")


def races(bench):
    """A racy place is named, though the program's files need not be where the launcher is."""
    done = bench.run(bench.command(bench.spread(1, 1), "--threads", "1",
                                   str(bench.compile("race", RACE))))
    yield from expect(bench, done, 0, r"write-write race: .* \(racy in race\) by nodes 0 and 1")


def expect(bench, done, status, *patterns):
    """As many lines of hiroba as patterns, each matching, and the status."""
    if done.returncode != status:
        yield f"status {done.returncode}, wanted {status}"
    lines = [line for line in done.stderr.decode(errors="replace").splitlines()
             if line.startswith("hiroba")]
    if len(lines) != len(patterns) or not all(map(re.search, patterns, lines)):
        yield f"lines {lines}, wanted {patterns}"
    if left := bench.left():
        yield f"processes {left} are left"


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


def ends(bench, strike, status, pattern, limit=END_SECONDS, places=(1, 2), **more):
    """A job is under way, `strike(job)` happens: it must be over in time, with one line."""
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
    if seconds > limit:
        yield f"over only after {seconds:.2f} s"
    done = subprocess.CompletedProcess([], job.returncode, b"", stderr)
    yield from expect(bench, done, status, pattern)


def killed_node(bench):
    name = bench.hosts.names[1]
    yield from ends(bench, lambda job: os.kill(on_host(bench, 1, False)[1], signal.SIGKILL), 137,
                    rf"rank [12] \(process \d+ on host {name}\) was killed by signal 9")


def killed_agent(bench):
    yield from ends(bench, lambda job: os.kill(on_host(bench, 1, True)[0], signal.SIGKILL), 78,
                    rf"host {bench.hosts.names[1]} with ranks 1 to 2 is lost: ")


def killed_agent_of_rank_0(bench):
    yield from ends(bench, lambda job: os.kill(on_host(bench, 0, True)[0], signal.SIGKILL), 78,
                    rf"host {bench.hosts.names[0]} with rank 0 is lost: ")


def silent_host(bench):
    """A host that the network no longer reaches: nothing says so but its silence."""
    try:
        yield from ends(bench, lambda job: bench.hosts.cut(1), 78,
                        rf"host {bench.hosts.names[1]} with ranks 1 to 2 is lost: ", limit=8.0,
                        quiet=True, HIROBA_PEER_TIMEOUT="3")
    finally:
        bench.hosts.mend(1)


def launcher_of(job):
    """`ip netns exec` becomes the launcher."""
    return job.pid


def terminated(bench):
    """SIGTERM reaches rank 0, whose death is the job's."""
    yield from ends(bench, lambda job: os.kill(launcher_of(job), signal.SIGTERM), 143,
                    rf"rank 0 \(process \d+ on host {bench.hosts.names[0]}\) was killed by signal 15")


def interrupted_twice(bench):
    def strike(job):
        os.kill(launcher_of(job), signal.SIGINT)
        os.kill(launcher_of(job), signal.SIGINT)
    # Two signals of one number may melt into one: then the first has ended rank 0.
    yield from ends(bench, strike, 130, r"interrupted twice|rank 0 .* was killed by signal 2")


def killed_launcher(bench):
    job = start_busy(bench, bench.spread(1, 2))
    os.kill(launcher_of(job), signal.SIGKILL)
    job.communicate(timeout=LIMIT_SECONDS)
    if left := bench.left():
        yield f"processes {left} are left"


def stacks(bench):
    """SIGUSR1: the stacks of every node, on all hosts; the job goes on."""
    job = start_busy(bench, bench.spread(1, 2))
    try:
        os.kill(launcher_of(job), signal.SIGUSR1)
        seen, text, deadline = set(), "", time.monotonic() + 30
        os.set_blocking(job.stderr.fileno(), False)
        while seen != {"0", "1", "2"} and time.monotonic() < deadline:
            text += (job.stderr.read() or b"").decode(errors="replace")
            seen = set(re.findall(r"^rank (\d), thread \d+: ", text, re.MULTILINE))
            time.sleep(0.05)
        if seen != {"0", "1", "2"}:
            yield f"stacks of ranks {sorted(seen)}: {text[-500:]}"
        if job.poll() is not None:
            yield f"the job ended with {job.returncode}"
    finally:
        job.kill()
        job.communicate()
    if left := bench.left():
        yield f"processes {left} are left"


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
    except OSError:
        return ""


def stopped_and_continued(bench):
    """SIGTSTP stops the nodes of all hosts and the launcher, SIGCONT has them all go on."""
    job = start_busy(bench, bench.spread(1, 2))
    try:
        everybody = [launcher_of(job), *on_host(bench, 0, False), *on_host(bench, 1, False)]
        for number, wanted in [(signal.SIGTSTP, {"T"}), (signal.SIGCONT, {"R", "S", "D"})]:
            os.kill(launcher_of(job), number)
            deadline = time.monotonic() + 10
            while not set(map(state_of, everybody)) <= wanted and time.monotonic() < deadline:
                time.sleep(0.02)
            if not set(map(state_of, everybody)) <= wanted:
                yield f"after signal {number} the states are {list(map(state_of, everybody))}"
        if len(everybody) != 4 or job.poll() is not None:
            yield f"processes {everybody}, status {job.returncode}"
    finally:
        job.kill()
        job.communicate()
    if left := bench.left():
        yield f"processes {left} are left"


def wrapper(bench, name, text):
    """A command in place of ssh that does `text` first; the host is $1."""
    script = bench.folder / name
    script.write_text("#!/bin/sh\nhost=$1; shift\n" + text +
                      "\nexec ip netns exec \"$host\" \"$@\"\n")
    script.chmod(0o755)
    return str(script)


def other_program(bench):
    """The second host has another file under the program's name."""
    program = bench.compile("busy", BUSY)
    other = bench.compile("other", BUSY.replace("4096", "2048"))
    execute = wrapper(bench, "remount", f"""
        [ "$host" = {bench.hosts.names[1]} ] || exec ip netns exec "$host" "$@"
        exec ip netns exec "$host" sh -c 'mount --bind {other} {program} && exec "$@"' sh "$@" """)
    done = bench.run(bench.command(bench.spread(1, 1), "--threads", "1", str(program),
                                   execute=execute))
    # The node's own words, then the launcher's on its end.
    yield from expect(bench, done, 78,
                      r"hiroba\[1@.*busy is build \w+ on node 0 but build \w+ on node 1",
                      rf"rank 1 \(process \d+ on host {bench.hosts.names[1]}\) ended with status 78")


def other_build(bench):
    """The second host has another hiroba under the same path."""
    folder = bench.folder / "copy"
    if not folder.exists():
        (folder / "bin").mkdir(parents=True)
        (folder / "lib").mkdir()
        shutil.copy(bench.hiroba, folder / "bin/hiroba")
        shutil.copy(bench.hiroba.replace("bin/hiroba", "lib/libhiroba.so"), folder / "lib")
        changed = bytearray((folder / "bin/hiroba").read_bytes())
        # The note's header: name of 4 bytes, id of 20, type 3, "GNU".
        at = changed.index(b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0") + 16
        changed[at] ^= 0xff
        (folder / "bin/changed").write_bytes(changed)
        (folder / "bin/changed").chmod(0o755)
    execute = wrapper(bench, "another_build", f"""
        [ "$host" = {bench.hosts.names[1]} ] || exec ip netns exec "$host" "$@"
        exec ip netns exec "$host" {folder}/bin/changed agent""")
    done = bench.run(bench.command(bench.spread(1, 1), "true", execute=execute,
                                   hiroba=str(folder / "bin/hiroba")))
    yield from expect(bench, done, 78, r"hiroba here is build \w+, the launcher's is \w+")


def bad_input(bench):
    first, second = bench.hosts.names[:2]
    true = shutil.which("true")
    for places, words, status, pattern in [
            ("nosuchhost", [true], 78, r"host nosuchhost: `ip netns exec nosuchhost` ended with status \d+"),
            (f"{first},{first}", [true], 64, rf"names {first} twice"),
            (f"{first}:0", [true], 64, r"0 nodes: wanted a whole number"),
            (f"{first},{second}", ["-n", "3", true], 64, r"places for 2 nodes, -n asks for 3"),
            (f"{first},{second}", ["/nonexistent/program"], 64, rf"host \S+: cannot run /nonexistent"),
    ]:
        done = bench.run(bench.command(places, *words))
        for wrong in expect(bench, done, status, pattern):
            yield f"{places} {words}: {wrong}"
    twice = wrapper(bench, "one_host", f"exec ip netns exec {first} \"$@\"")
    done = bench.run(bench.command("a,b", true, execute=twice))
    yield from expect(bench, done, 64, r"a and b are one host")
    lone = wrapper(bench, "no_address", f"""
        exec ip netns exec "$host" unshare -n "$@" """)
    done = bench.run(bench.command(first, true, execute=lone))
    yield from expect(bench, done, 78, rf"host {first}: the launcher cannot be reached at TCP port")
    limited = wrapper(bench, "little_space", "ulimit -v 1000000")
    done = bench.run(bench.command(f"{first},{second}", str(bench.compile("busy", BUSY)),
                                   execute=limited))
    yield from expect(bench, done, 78, r"host \S+: address space limit too low")


def killed_launcher_over_ssh(bench, execute):
    """Here only the end of its connection tells an agent that nobody wants it any more."""
    job = start_busy(bench, "10.77.0.1,10.77.0.2:2", execute=execute)
    os.kill(launcher_of(job), signal.SIGKILL)
    job.communicate(timeout=LIMIT_SECONDS)
    deadline = time.monotonic() + END_SECONDS
    while any(on_host(bench, i, True) or nodes_of(bench, i) for i in (0, 1)):
        if time.monotonic() > deadline:
            yield f"left: {[on_host(bench, i, True) + nodes_of(bench, i) for i in (0, 1)]}"
            return
        time.sleep(0.01)


def nodes_of(bench, index):
    return [pid for pid in on_host(bench, index, False)
            if str(bench.folder / "busy").encode() in command_line(pid)]


def real_ssh(bench):
    """OpenSSH between the launcher's namespace and a host, with keys and a daemon of its own."""
    daemon = shutil.which("sshd") or "/usr/sbin/sshd"
    if not (os.path.exists(daemon) and shutil.which("ssh")):
        print("skip real_ssh: no sshd (package openssh-server) or ssh here")
        return
    folder = bench.folder / "ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in ("host", "user"):
        if not (folder / name).exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            str(folder / name)], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    (folder / "config").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\n"
        f"UsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n")
    os.makedirs("/run/sshd", exist_ok=True)
    daemons = []
    try:
        for name in bench.hosts.names[:2]:
            daemons.append(subprocess.Popen(
                ["ip", "netns", "exec", name, daemon, "-D", "-e", "-p", "2222", "-f",
                 str(folder / "config")], stderr=subprocess.DEVNULL))
        execute = (f"ssh -T -p 2222 -i {folder}/user -o BatchMode=yes -o LogLevel=ERROR "
                   f"-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
                   f"-o ConnectionAttempts=20")
        program = bench.compile("files", FILES)
        text = b"first\nsecond\n" * 20000
        results = []
        for name, command in [
                ("bare", [str(program)]),
                ("hosts", bench.command("10.77.0.1,10.77.0.2:2", "--threads", "1", str(program),
                                        execute=execute))]:
            target = bench.folder / f"ssh_written_{name}"
            results.append(bench.run([*command, str(target), "two words"], text,
                                     GIVEN="two words", OMP_NUM_THREADS="3", HIROBA_STATS="1"))
        bare, got = results
        if (got.returncode, got.stdout) != (bare.returncode, bare.stdout):
            yield f"status {got.returncode}, output {got.stdout!r}, {got.stderr[-500:]!r}"
        if len(regions(got.stderr)) != 3:
            yield f"regions {regions(got.stderr)}"
        if (bench.folder / "ssh_written_bare").read_bytes() != \
                (bench.folder / "ssh_written_hosts").read_bytes():
            yield "the file differs"
        yield from killed_launcher_over_ssh(bench, execute)
        refused = bench.run(bench.command("10.77.0.9", "true", execute=execute.replace("=20", "=1") +
                                          " -o ConnectTimeout=2"))
        if refused.returncode != 78 or b"hiroba: host 10.77.0.9: `ssh " not in refused.stderr:
            yield f"unreachable host: status {refused.returncode}, {refused.stderr!r}"
    finally:
        for each in daemons:
            each.kill()
            each.wait()


def all_cases(options):
    have = lambda name: (options.examples / name).exists()  # noqa: E731
    yield "cg", lambda b: example(b, "cg", ["S"], b.spread(1, 1), 2)
    yield "heat", lambda b: example(b, "heat", ["64", "20"], b.spread(2, 1), 3)
    yield "heat_three_hosts", lambda b: example(b, "heat", ["64", "10"], b.spread(1, 2, 1), 4)
    if have("histogram"):
        yield "histogram", lambda b: example(b, "histogram", [], b.spread(1, 1, 1), 3)
    for case in (files, verbose, races, killed_node, killed_agent, killed_agent_of_rank_0,
                 silent_host, terminated, interrupted_twice, killed_launcher, stacks,
                 stopped_and_continued, other_program, other_build, bad_input, real_ssh):
        yield case.__name__, case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--examples", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    options.hiroba = str(pathlib.Path(options.hiroba).resolve())
    options.examples = options.examples.resolve()
    if why := host_nets.why_missing():
        print(f"skipped: {why}")
        return SKIPPED
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="hosts_runs") as folder, host_nets.Hosts(3) as hosts:
        bench = Bench(options, hosts, pathlib.Path(folder).resolve())
        for name, case in list(all_cases(options)) * options.repeat:
            if options.only not in name:
                continue
            start = time.monotonic()
            try:
                wrong = list(case(bench))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                wrong = [str(error)]
            print(f"FAIL {name}: " + "; ".join(wrong) if wrong else
                  f"ok   {name} ({time.monotonic() - start:.1f} s)", flush=True)
            passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
