#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over several hosts: `hiroba run --hosts` between network namespaces.

A run of a program passes when its output is byte for byte that of the bare program, its status is
the same, every node took part, and no process is left on any host. Further cases kill a node, an
agent and a whole host, and check bad input. Exits with 77 where namespaces cannot be had.

    hosts_runs.py --hiroba build/bin/hiroba --examples build/examples         in every check
    hosts_runs.py ... --long --repeat 20 --only cg                             longer
"""
import argparse
import contextlib
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import host_nets  # noqa: E402
from hosts_bench import (BUSY, END_SECONDS, FILES, FLOOD, FLOOD_OF_NODE, LEFT_SECONDS, LIMIT_SECONDS, WAITS,  # noqa: E402
                         LONG, RACE, STREAM, Bench, differences, ends, environment, example, expect,
                         launcher_of, on_host, regions, start_busy, state_of, command_line, wrapper)
from hosts_devices import colors, device, says_devices, several_networks  # noqa: E402
from hosts_places import copied, other_paths, perf_between_hosts, ports  # noqa: E402
from signals_taken import take_as_from_a_terminal  # noqa: E402

SKIPPED = 77


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


def ipv6(bench):
    """Hosts that have no IPv4, named by their addresses; a job between them, and what it prints."""
    with host_nets.Hosts(2, six=True) as hosts:
        six = Bench(bench.options, hosts, bench.folder)
        yield from example(six, "heat", ["64", "10"], six.spread(1, 2), 3)
        yield from says_devices(six)
        numbers = wrapper(bench, "by_number", f"""
            case "$host" in fd77::1) host={hosts.names[0]};; fd77::2) host={hosts.names[1]};; esac""")
        done = six.run(six.command("[fd77::1],[fd77::2]:2", "--threads", "1",
                                   str(bench.options.examples / "heat"), "32", "3", execute=numbers))
        if done.returncode != 0:
            yield f"named by address: status {done.returncode}, {done.stderr[-300:]!r}"


def stream(bench, mtu_before, mtu, rounds=60):
    """Seconds of a job whose network takes packets of `mtu` bytes from its first rounds on, its
    output, and the lines of hiroba."""
    program = bench.compile("stream", STREAM)
    try:
        bench.hosts.limit_datagrams(mtu_before)
        job = subprocess.Popen(bench.command(bench.spread(1, 1), "--threads", "1", str(program),
                                             str(rounds)), stdin=subprocess.PIPE, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        job.stdout.readline()
        bench.hosts.limit_datagrams(mtu)
        out, err = job.communicate("\n", timeout=LIMIT_SECONDS)
    finally:
        bench.hosts.limit_datagrams(1500)
    seconds = re.search(r"^seconds (\S+)", err, re.MULTILINE)
    lines = [line for line in err.splitlines() if line.startswith("hiroba")]
    return float(seconds.group(1)) if seconds else LIMIT_SECONDS, out, lines


def path_mtu(bench):
    """The network takes smaller packets all of a sudden: a line, and the job goes on as fast as if
    it had always been so."""
    always, out, lines = stream(bench, 600, 600)
    if lines:
        yield f"lines {lines} with a small MTU from the start"
    seconds, shrunk_out, lines = stream(bench, 1500, 600)
    if shrunk_out != out or not out:
        yield f"output {shrunk_out!r}, not {out!r}"
    if not 1 <= len(lines) <= 2 or not all("takes datagrams of 552 bytes only" in one for one in lines):
        yield f"lines {lines}"
    if seconds > 4 * always:
        yield f"{seconds:.2f} s after the MTU shrank, {always:.2f} s where it was small"


def bad_network(bench):
    """Where datagrams get lost, doubled and overtaken a job is right, and ends."""
    bad = {"HIROBA_UDP_LOSS": "10", "HIROBA_UDP_DUPLICATE": "5", "HIROBA_UDP_REORDER": "10"}
    yield from example(bench, "heat", ["64", "20"], bench.spread(2, 1), 3, **bad)


def spmd(bench):
    """Every node enters main, on three hosts: random programs against their oracle."""
    program = pathlib.Path(bench.hiroba).parent / "spmd_random"
    done = bench.run(bench.command(bench.spread(1, 2, 1), "--spmd", str(program), "1", "5"))
    if done.returncode != 0:
        yield f"status {done.returncode}: {done.stdout!r} {done.stderr[-300:]!r}"
    yield from bench.nothing_left()


def flood(bench):
    """What a node of another host printed last is there to the last byte, however slowly the
    command that stands for ssh hands it on."""
    wanted = b"".join(b"%09d\n" % i for i in range(1000000))
    slow = wrapper(bench, "slow", f"""
        ip netns exec "$host" "$@" | {sys.executable} -c '
import os, time
while piece := os.read(0, 1 << 16):
    time.sleep(0.02)
    while piece:
        piece = piece[os.write(1, piece):]'
        exit 0""")
    for name, source, words in [("flood", FLOOD, []), ("flood_of_node", FLOOD_OF_NODE, ["--spmd"])]:
        done = bench.run(bench.command(bench.spread(1, 1), *words, "--threads", "1",
                                       str(bench.compile(name, source)), execute=slow))
        if done.returncode != 0 or done.stdout != wanted:
            yield (f"{name}: status {done.returncode}, {len(done.stdout)} of {len(wanted)} bytes, "
                   f"{done.stderr[-300:]!r}")


def named_places(bench):
    """HIROBA_STATS=full names the places where threads synchronize as on one host."""
    program = [str(bench.options.examples / "heat"), "32", "3"]
    here = bench.run([bench.hiroba, "run", "-n", "2", "--threads", "1", *program],
                     HIROBA_STATS="full")
    done = bench.run(bench.command(bench.spread(1, 1), "--threads", "1", *program),
                     HIROBA_STATS="full")
    def places(run):
        table = re.split(rb"synchronization\n", run.stderr)[-1]
        return {line[11 * 15:].strip() for line in table.splitlines()}
    if places(done) != places(here) or not any(b"heat" in name for name in places(done)):
        yield f"places {places(done)}, on one host {places(here)}"
    target = bench.folder / "stats.json"
    bench.run(bench.command(bench.spread(1, 1), "--threads", "1", *program),
              HIROBA_STATS=f"json:{target}")
    text = target.read_text()
    if not all(f'"{name.decode()}"' in text for name in places(here)):
        yield f"JSON lacks names: {text[:500]}"


def races(bench):
    """A racy place is named, though the program's files need not be where the launcher is."""
    done = bench.run(bench.command(bench.spread(1, 1), "--threads", "1",
                                   str(bench.compile("race", RACE))))
    yield from expect(bench, done, 0, r"write-write race: .* \(racy in race\) by nodes 0 and 1",
                      r"races at 1 place: 1 in racy in race\.")


def crash(bench):
    """A crash on another host is told with that host's name, and with the stack."""
    program = bench.folder / "crashes"
    source = pathlib.Path(__file__).resolve().parent / "programs" / "crashes.c"
    subprocess.run(["gcc", "-g", "-O1", "-fopenmp", str(source), "-o", str(program)], check=True)
    for rank, number, how in ((1, 11, "null"), (0, 6, "abort")):
        done = bench.run(bench.command(bench.spread(1, 1), "--threads", "1", str(program), how, str(rank)))
        # Rank 0's death by a signal is told as that of any other node.
        yield from expect(bench, done, 128 + number,
                          rf"rank {rank} \(host \S+\), thread \d+: SIG.*, at crashes\.c:\d+ \(crash\)",
                          rf"rank {rank} \(process \d+ on host {bench.hosts.names[rank]}\) was killed by")
        stack = re.findall(r"^  #\d+ +0x\w+ (.*)", done.stderr.decode(), re.MULTILINE)
        if not any("main._omp_fn" in frame for frame in stack):
            yield f"no stack: {done.stderr[-600:]!r}"


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


def grace(bench):
    """With HIROBA_LOSS_GRACE the others go on for that time after a node, or a whole host, died."""
    more = {"least": 1.4, "limit": 1.5 + END_SECONDS, "quiet": True, "HIROBA_LOSS_GRACE": "1500"}
    name = bench.hosts.names[1]
    yield from ends(bench, lambda job: os.kill(on_host(bench, 1, False)[1], signal.SIGKILL), 137,
                    rf"rank [12] \(process \d+ on host {name}\) was killed by signal 9", **more)
    yield from ends(bench, lambda job: os.kill(on_host(bench, 1, True)[0], signal.SIGKILL), 78,
                    rf"host {name} with ranks 1 to 2 is lost: ", **more)


def silent_host(bench):
    """A host that the network no longer reaches: nothing says so but its silence, to the launcher or to a node, by the same
    limit."""
    try:
        yield from ends(bench, lambda job: bench.hosts.cut(1), 78,
                        rf"(?:host {bench.hosts.names[1]} with ranks 1 to 2|node [12]) is lost: ", limit=8.0,
                        mend=lambda: bench.hosts.mend(1),
                        quiet=True, HIROBA_PEER_TIMEOUT="3")
    finally:
        bench.hosts.mend(1)


def healed_link(bench, seconds=5):
    """A host that the network does not reach for a while, in the middle of a job: nobody notices but
    by the clock."""
    rounds = "1000"  # so many that the link is cut before the last, on a busy machine, too
    program = bench.compile("stream", STREAM)
    bare = bench.run([str(program), rounds], OMP_NUM_THREADS="2")
    job = subprocess.Popen(bench.command(bench.spread(1, 1), "--threads", "1", str(program), rounds),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=environment(HIROBA_STATS="1", HIROBA_REGIONS="spread"))
    try:
        first = job.stdout.readline()
        bench.hosts.cut(1)
        try:
            time.sleep(seconds)
            ended = job.poll()
        finally:
            bench.hosts.mend(1)
        if ended is not None:
            yield f"it had ended with status {ended} while the link was cut"
        out, err = job.communicate(timeout=LIMIT_SECONDS)
    finally:
        job.kill()
        job.wait()
    timeless = [re.sub(rb"^seconds .*$", b"", text, flags=re.MULTILINE) for text in (err, bare.stderr)]
    got = subprocess.CompletedProcess([], job.returncode, first + out, timeless[0])
    bare.stderr = timeless[1]
    yield from differences(bench, bare, got, 2)


def terminated(bench):
    """SIGTERM reaches rank 0, whose death is the job's."""
    yield from ends(bench, lambda job: os.kill(launcher_of(job), signal.SIGTERM), 143,
                    rf"rank 0 \(process \d+ on host {bench.hosts.names[0]}\) was killed by signal 15")


def hangup(bench):
    """A terminal that goes away ends the job: the kernel tells the launcher alone, which leads the
    session; rank 0 is on another host, or on this one but under an agent."""
    program = bench.compile("busy", BUSY)
    pid, master = pty.fork()
    if pid == 0:
        command = bench.command(bench.spread(1, 2), "--threads", "1", str(program))
        os.execvpe(command[0], command, environment())
    text = b""
    while b"under way" not in text:
        text += os.read(master, 1000)
    os.close(master)
    deadline = time.monotonic() + LEFT_SECONDS
    ended = 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
    if not ended:
        yield "the launcher goes on"
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    elif os.waitstatus_to_exitcode(status) != 128 + signal.SIGHUP:
        yield f"status {os.waitstatus_to_exitcode(status)}"
    yield from bench.nothing_left()


def hung_command(bench):
    """The command in place of ssh hangs in a child of its own: both end with the job, and nobody
    waits for what they hold open."""
    forever = f"sleep {10 * LIMIT_SECONDS}"
    for words, why in ((forever, "no agent came from host"),
                       (f"{forever} & wait", "no agent came from host"),
                       (f"{forever} &", "ended with status 0 before an agent came")):
        hung = bench.folder / "hung"
        hung.write_text(f"#!/bin/sh\n{words}\n")
        hung.chmod(0o755)
        done = bench.run(bench.command(bench.spread(1, 1), "true", execute=str(hung)),
                         HIROBA_HOST_TIMEOUT="1")
        yield from expect(bench, done, 78, why)
        yield from bench.nothing_left()


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
    yield from bench.nothing_left()


@contextlib.contextmanager
def killed_at_end(job):
    try:
        yield job
    finally:
        job.kill()
        job.communicate()


def stacks(bench):
    """SIGUSR1: the stacks of every node, on all hosts; the job goes on."""
    with killed_at_end(start_busy(bench, bench.spread(1, 2))) as job:
        os.kill(launcher_of(job), signal.SIGUSR1)
        seen, text, deadline = set(), "", time.monotonic() + LEFT_SECONDS
        os.set_blocking(job.stderr.fileno(), False)
        while seen != {"0", "1", "2"} and time.monotonic() < deadline:
            text += (job.stderr.read() or b"").decode(errors="replace")
            seen = set(re.findall(r"^rank (\d), thread \d+: ", text, re.MULTILINE))
            time.sleep(0.05)
        if seen != {"0", "1", "2"}:
            yield f"stacks of ranks {sorted(seen)}: {text[-500:]}"
        if job.poll() is not None:
            yield f"the job ended with {job.returncode}"
    yield from bench.nothing_left()


def stillness(bench):
    """A job of two hosts in which nothing runs says so, each host of its own threads."""
    command = bench.command(bench.spread(1, 2), "--threads", "1", str(bench.compile("waits", WAITS)))
    job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           env=environment(HIROBA_STILL="3"))
    with killed_at_end(job):
        guard = threading.Timer(LEFT_SECONDS, job.kill)
        guard.start()
        lines = sorted(job.stderr.readline() for _ in range(2))
        guard.cancel()
        for line, wanted in zip(lines, (r"rank 0, thread \d+ waits for the other nodes at the end of the region",
                                        r"rank 2, thread \d+ waits in read at")):
            if not re.search(f"^hiroba: nothing has run for a while: {wanted}", line):
                yield f"{lines}, not {wanted!r}"
        if job.poll() is not None:
            yield f"the job ended with {job.returncode}"
    yield from bench.nothing_left()


def stopped_for_a_second(bench):
    """A node of another host that stands still for a second has missed nothing."""
    program = bench.compile("long", LONG)
    bare = bench.run([str(program), "0"], OMP_NUM_THREADS="3")
    job = subprocess.Popen(bench.command(bench.spread(1, 2), "--threads", "1", str(program)),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, cwd=bench.folder,
                           env=environment(OMP_NUM_THREADS="3", HIROBA_STATS="1"))
    try:
        line = job.stdout.readline()
        victim = on_host(bench, 1, False)[1]
        os.kill(victim, signal.SIGSTOP)
        time.sleep(1)
        if job.poll() is not None:
            yield f"over with {job.returncode} while a node was stopped"
        os.kill(victim, signal.SIGCONT)
        stdout, stderr = job.communicate(timeout=LIMIT_SECONDS)
    finally:
        job.kill()
        job.wait()
    done = subprocess.CompletedProcess([], job.returncode, line + stdout, stderr)
    yield from differences(bench, bare, done, nodes=3)


def stopped_and_continued(bench):
    """SIGTSTP stops the nodes of all hosts and the launcher, SIGCONT has them all go on."""
    with killed_at_end(start_busy(bench, bench.spread(1, 2))) as job:
        everybody = [launcher_of(job), *on_host(bench, 0, False), *on_host(bench, 1, False)]
        for number, wanted in [(signal.SIGTSTP, {"T"}), (signal.SIGCONT, {"R", "S", "D"})]:
            os.kill(launcher_of(job), number)
            deadline = time.monotonic() + LEFT_SECONDS
            while not set(map(state_of, everybody)) <= wanted and time.monotonic() < deadline:
                time.sleep(0.02)
            if not set(map(state_of, everybody)) <= wanted:
                yield f"after signal {number} the states are {list(map(state_of, everybody))}"
        if len(everybody) != 4 or job.poll() is not None:
            yield f"processes {everybody}, status {job.returncode}"
    yield from bench.nothing_left()


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
    deadline = time.monotonic() + LEFT_SECONDS
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
    if options.long:
        yield "cg_three_hosts", lambda b: example(b, "cg", ["S"], b.spread(1, 1, 1), 3)
        yield "cg_pairs", lambda b: example(b, "cg", ["S"], b.spread(2, 2), 4)
    yield "heat", lambda b: example(b, "heat", ["64", "20"], b.spread(2, 1), 3)
    # Where UCX is missing these say so, and fail.
    wire = {"UCX_TLS": "tcp,self"}
    yield "ucx", lambda b: example(b, "heat", ["64", "20"], b.spread(1, 1, 1), 3,
                                   HIROBA_PROVIDER="ucx", **wire)
    yield "shm_and_ucx", lambda b: example(b, "heat", ["64", "20"], b.spread(2, 2), 4,
                                           HIROBA_PROVIDER="shm+ucx", **wire)
    yield "heat_three_hosts", lambda b: example(b, "heat", ["64", "10"], b.spread(1, 2, 1), 4)
    if have("histogram"):
        yield "histogram", lambda b: example(b, "histogram", [], b.spread(1, 1, 1), 3)
    for case in (files, ports, other_paths, copied, perf_between_hosts, device, several_networks, colors, ipv6, path_mtu, bad_network, spmd, flood, named_places,
                 races, crash,
                 grace, stopped_for_a_second,
                 killed_node, killed_agent, killed_agent_of_rank_0,
                 silent_host, healed_link, terminated, hangup, hung_command, interrupted_twice, killed_launcher, stacks,
                 stillness, stopped_and_continued, other_program, other_build, bad_input, real_ssh):
        yield case.__name__, case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--examples", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="more nodes than this machine has cores")
    options = parser.parse_args()
    options.hiroba = str(pathlib.Path(options.hiroba).resolve())
    options.examples = options.examples.resolve()
    take_as_from_a_terminal()
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
