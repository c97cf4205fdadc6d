#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under the profiles of containers: packaging/docker/seccomp.json, and what Docker's own denies.

The profile is made into a filter of the kernel's as a container's runtime makes it, without one:
names become numbers by the system's headers. A job passes that is right on every node; what the
profile denies must be denied, else the filter would prove nothing.

    container_runs.py --hiroba build/bin/hiroba
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from clean_environment import clean_environment

PACKAGED = pathlib.Path(__file__).resolve().parents[2] / "packaging/docker"
# What Docker's own profile denies besides: userfaultfd, and every personality but these.
PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
DENIED_BY_DOCKER = [{"names": ["userfaultfd"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
                    {"names": ["personality"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1,
                     "unless": PERSONALITIES}]
EPERM, ENOSYS = 1, 38
# Calls that do nothing with these arguments where they are not denied: (call, error wanted).
TRIED = {"unshare(CLONE_NEWUTS)": EPERM, "syscall(SYS_keyctl, 0, -1, 0)": EPERM,
         "syscall(SYS_bpf, -1, 0, 0)": EPERM, "syscall(SYS_perf_event_open, 0, 0, 0, 0, 0)": EPERM,
         "mount(0, 0, 0, 0, 0)": EPERM, "setns(-1, 0)": EPERM, "syscall(SYS_clone3, 0, 0)": ENOSYS,
         "syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0)": EPERM}
PROGRAM = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/// The kernel's number: getpid() is node 0's everywhere.
static int own_process(void) {
    char text[32] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 ? atoi(text) : -1;
}
int main(void) {
    static int process[64];
    static double value[1 << 16];
    double sum = 0;
#pragma omp parallel
    process[omp_get_thread_num()] = own_process();
#pragma omp parallel for
    for (int i = 0; i < 1 << 16; ++i) value[i] = i;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 1 << 16; ++i) sum += value[(i * 7) & 0xffff];
    printf("sum %.0f, processes differ %d\n", sum, process[0] != process[1]);
}
"""
RIGHT = f"sum {(1 << 16) * ((1 << 16) - 1) // 2}, processes differ 1\n"


def compile_c(folder, name, source, *words):
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-Wall", *words, folder / f"{name}.c", "-o", folder / name], check=True)
    return str(folder / name)


def rules_of(profile):
    """Lines of C for what a profile of Docker's form denies; all else is allowed."""
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW", profile["defaultAction"]
    for rule in profile["syscalls"]:
        assert rule["action"] == "SCMP_ACT_ERRNO", rule
        for name in rule["names"]:
            lines = []
            for argument in rule.get("args", []):
                assert argument["op"] == "SCMP_CMP_MASKED_EQ", argument
                lines.append(f"LOW_OF_ARGUMENT({argument['index']}), AND({argument['value']}u), "
                             f"IS({argument['valueTwo']}u),")
            if "unless" in rule:
                lines += ["LOW_OF_ARGUMENT(0),", *(f"IS_NOT({value}u)," for value in rule["unless"])]
            # A call that these headers do not know cannot be made by name either.
            yield f"#ifdef SYS_{name}\n    {{SYS_{name}, {rule['errnoRet']}, {{{' '.join(lines)} END}}}},\n#endif\n"


def filter_of(folder, name, profile):
    """A program that runs its arguments under the profile."""
    return compile_c(folder, name, r"""
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
/* A test jumps over the next instruction where the rule still applies; that one leaves the rule. */
#define LOW_OF_ARGUMENT(i) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i]))
#define AND(v) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, v)
#define IS(v) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, 1, 0), LEAVE
#define IS_NOT(v) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, 0, 1), LEAVE
#define LEAVE BPF_STMT(BPF_RET | BPF_K, 0xdeadbeef)
#define END BPF_STMT(BPF_RET | BPF_K, 0xfeedbeef)
static const struct { unsigned number, error; struct sock_filter tests[16]; } rules[] = {
""" + "".join(rules_of(profile)) + r"""
};
static struct sock_filter filter[4096];
int main(int argc, char** argv) {
    unsigned count = 0;
#define ADD(...) filter[count++] = (struct sock_filter)__VA_ARGS__
    if (argc < 2) return 64;
    for (unsigned i = 0; i < sizeof rules / sizeof *rules; ++i) {
        unsigned tests = 0;
        while (rules[i].tests[tests].k != 0xfeedbeef) ++tests;
        /* Its own load of the number, since the rule before may have loaded an argument. */
        ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
        ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rules[i].number, 0, tests + 1));
        for (unsigned t = 0; t < tests; ++t) {
            filter[count] = rules[i].tests[t];
            if (filter[count].k == 0xdeadbeef) filter[count] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, tests - t);
            ++count;
        }
        ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | rules[i].error));
    }
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const struct sock_fprog whole = {count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole)) {
        perror("seccomp");
        return 77;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
""")


def tries(folder):
    """A program that prints a line for each call of TRIED and the error it gave."""
    lines = "".join(f'    errno = 0; r = {call}; if (r == 0 && getpid() != self) _exit(0); printf("%d {call}\\n", r < 0 ? errno : 0);\n'
                    for call in TRIED)
    return compile_c(folder, "tries", "#define _GNU_SOURCE\n#include <errno.h>\n#include <sched.h>\n#include <signal.h>\n"
                     "#include <stdio.h>\n#include <sys/mount.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
                     "int main(void) {\n    long r; const pid_t self = getpid(); setbuf(stdout, NULL);\n" + lines + "    return 0;\n}\n")


def run(*words, **more):
    environment = clean_environment("OMP_")
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120,
                          env={**environment, **more})


def denies(bench, under):
    """The filter denies what the profile names, and nothing denies it otherwise."""
    told = dict(reversed(line.split(" ", 1)) for line in run(under, tries(bench.folder)).stdout.splitlines())
    for call, error in TRIED.items():
        if told.get(call) != str(error):
            yield f"{call}: error {told.get(call)}, not {error}"


def job(bench, under, **more):
    return run(under, bench.hiroba, "run", "-n", "2", "--threads", "1", bench.program, **more)


def packaged(bench):
    """Under our profile jobs are right with both engines and over every provider of one host."""
    under = bench.packaged
    yield from denies(bench, under)
    engines = run(under, bench.hiroba, "info").stdout
    bare = run(bench.hiroba, "info").stdout
    if (" uffd: usable" in bare) != (" uffd: usable" in engines):
        yield f"the engine differs: {engines!r}; bare {bare!r}"
    for provider in ("shm", "udp"):
        for engine in ("uffd", "mprotect") if " uffd: usable" in bare else ("mprotect",):
            done = job(bench, under, HIROBA_PROVIDER=provider, HIROBA_FAULT_ENGINE=engine)
            if (done.returncode, done.stdout) != (0, RIGHT):
                yield f"{provider}, {engine}: status {done.returncode}, {done.stdout!r}, {done.stderr[-400:]!r}"
    many = run(under, bench.hiroba, "run", "--hosts", "here", "--ssh", bench.no_host, "--threads", "1", "-n",
               "1", bench.program)
    if many.returncode != 0:
        yield f"an agent: status {many.returncode}, {many.stderr[-300:]!r}"


def as_docker(bench):
    """Under what Docker's own profile denies: one line that names the call and the cure, status 78."""
    profile = json.loads((PACKAGED / "seccomp.json").read_text())
    profile["syscalls"] += DENIED_BY_DOCKER
    done = job(bench, filter_of(bench.folder, "as_docker", profile))
    if done.returncode != 78 or done.stdout or len(done.stderr.splitlines()) != 1 or \
            not re.search(r"personality.*refused.*--security-opt seccomp=", done.stderr):
        yield f"status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
    # With that one call allowed the other engine takes over by itself.
    profile["syscalls"].pop()
    under = filter_of(bench.folder, "without_userfaultfd", profile)
    done = job(bench, under)
    if (done.returncode, done.stdout) != (0, RIGHT):
        yield f"without userfaultfd: status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
    asked = job(bench, under, HIROBA_FAULT_ENGINE="uffd")
    if asked.returncode != 78 or "userfaultfd" not in asked.stderr:
        yield f"uffd asked for: status {asked.returncode}, {asked.stderr!r}"
    told = run(under, bench.hiroba, "info").stdout
    if not re.search(r"uffd: (?!usable).*", told):
        yield f"hiroba info: {told!r}"


def files(bench):
    """What Dockerfile and compose name is there, and the boxes' script parses."""
    text = (PACKAGED / "Dockerfile").read_text()
    root = PACKAGED.parents[1]
    for source in re.findall(r"^COPY (?!--from)(\S+) ", text, re.MULTILINE):
        if not (root / source).exists():
            yield f"Dockerfile copies {source}, which is missing"
    for example in re.findall(r"/build/examples/(\w+)", text):
        if not list((root / "examples").glob(f"**/{example}.*")):
            yield f"Dockerfile copies the example {example}, which is missing"
    compose = (PACKAGED / "compose.yaml").read_text()
    for name in re.findall(r"seccomp:(\S+?)\"", compose):
        if not (PACKAGED / name).exists():
            yield f"compose.yaml names {name}, which is missing"
    for name in re.findall(r"dockerfile: (\S+)", compose):
        if not (root / name).exists():
            yield f"compose.yaml names {name}, which is missing"
    hosts = re.search(r"^printf 'Host ([\w ]+)", (PACKAGED / "box.sh").read_text(), re.MULTILINE).group(1).split()
    if hosts != re.findall(r"^    (box\d):", compose, re.MULTILINE):
        yield f"box.sh knows {hosts}, compose.yaml has others"
    if run("sh", "-n", PACKAGED / "box.sh").returncode != 0:
        yield "box.sh does not parse"


class Bench:
    def __init__(self, hiroba, folder):
        self.hiroba, self.folder = str(hiroba.resolve()), folder
        self.program = compile_c(folder, "program", PROGRAM, "-fopenmp")
        self.packaged = filter_of(folder, "packaged", json.loads((PACKAGED / "seccomp.json").read_text()))
        shell = folder / "no_host"
        shell.write_text('#!/bin/sh\nshift\nexec "$@"\n')
        shell.chmod(0o755)
        self.no_host = str(shell)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hiroba", type=pathlib.Path, required=True)
    options = parser.parse_args()
    if shutil.which("gcc") is None:
        print("skipped: no gcc")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hiroba_container") as name:
        bench = Bench(options.hiroba, pathlib.Path(name))
        if run(bench.packaged, "true").returncode == 77:
            print("skipped: no seccomp here")
            return 77
        for case in (files, packaged, as_docker):
            wrong = list(case(bench))
            print(f"FAIL {case.__name__}: " + "; ".join(wrong) if wrong else f"ok   {case.__name__}", flush=True)
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
