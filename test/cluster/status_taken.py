#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program's status stays its own where another wait of the launcher takes it.

libdw, with which the launcher reads the stack of a node that tells of a race, waits for the thread it
reads: if the node ends at that moment, the launcher's own waitpid() never hears how. Here a preloaded
waitpid() takes every status, each time, as libdw does once in a while. What was taken is
counted, so that a run in which nothing was does not count as right.

    status_taken.py --hiroba build/bin/hiroba [--runs 3]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from clean_environment import clean_environment

STATUS = pathlib.Path(__file__).parent / "programs/status.c"
THIEF = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
pid_t waitpid(pid_t pid, int* status, int options) {
    pid_t (*const real)(pid_t, int*, int) = (pid_t(*)(pid_t, int*, int))dlsym(RTLD_NEXT, "waitpid");
    const char* const told = getenv("TAKEN");
    siginfo_t ended = {0};
    while (told != NULL && pid == -1 &&
           waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) {
        int taken;
        if (real(ended.si_pid, &taken, 0) == ended.si_pid && write(atoi(told), "x", 1) != 1) abort();
        ended.si_pid = 0;
    }
    return real(pid, status, options);
}
"""


def run(hiroba, folder, how, where, status):
    """The status of the run, and how many statuses were taken from the launcher."""
    reader, writer = os.pipe()
    environment = clean_environment("OMP_")
    environment.update(LD_PRELOAD=str(folder / "thief.so"), TAKEN=str(writer))
    done = subprocess.run([hiroba, "run", "-n", "2", folder / "status", how, where, str(status)],
                          env=environment, pass_fds=[writer], capture_output=True, text=True, timeout=120)
    os.close(writer)
    taken = len(os.read(reader, 4096))
    os.close(reader)
    return done, taken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", default="build/bin/hiroba")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "thief.c").write_text(THIEF)
        subprocess.run(["gcc", "-shared", "-fPIC", folder / "thief.c", "-o", folder / "thief.so", "-ldl"],
                       check=True)
        subprocess.run(["gcc", "-g", "-O1", "-fopenmp", STATUS, "-o", folder / "status"], check=True)
        for how, where, status in [("return", "main", 0), ("return", "main", 3), ("exit", "main", 0),
                                   ("exit", "main", 7)] * options.runs:
            done, taken = run(options.hiroba, folder, how, where, status)
            if done.returncode != status or taken == 0:
                faults.append(f"{how} {status}: status {done.returncode}, {taken} statuses taken\n"
                              f"{done.stderr}")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{4 * options.runs} runs, {len(faults)} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
