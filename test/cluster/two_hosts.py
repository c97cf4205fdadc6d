#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/two-hosts.sh: runs a command beside hosts that are network namespaces with a wire between them.

The command runs where a launcher would, in a namespace of its own, on the first host's core. Its environment
names the hosts as a batch system does (PBS_NODEFILE), in HOSTS with commas between, and in HIROBA_SSH what
starts a command on one of them. Whatever was made is removed at the end, also after a signal.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys

import host_nets

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
MTU = range(576, 65536)


def core_list(text):
    """[0, 2, 3] of "0,2-3"."""
    cores = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    if not cores:
        raise ValueError
    return cores


def parse():
    parser = argparse.ArgumentParser(prog="two-hosts.sh", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-n", "--hosts", type=int, choices=range(2, 17), default=2, metavar="HOSTS",
                        help="how many, 2 to 16 (default: 2)")
    parser.add_argument("--mtu", type=int, default=1500, help="largest packet of the wire (default: 1500)")
    parser.add_argument("--cores", type=core_list, metavar="LIST",
                        help="cores of the hosts, in turn, as 0,2-3 (default: those this command may use)")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    options = parser.parse_args()
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        parser.error("which command?")
    if options.mtu not in MTU:
        parser.error(f"--mtu {options.mtu}: {MTU[0]} to {MTU[-1]} bytes")
    allowed = sorted(os.sched_getaffinity(0))
    options.cores = options.cores or allowed
    if foreign := sorted(set(options.cores) - set(allowed)):
        parser.error(f"--cores: {foreign} are not among those of this command, {allowed}")
    return options


class Signals:
    """Those that ask for the end. They wait while hosts are made or taken down; then they are the command's."""

    def __init__(self):
        self.child = None
        self.early = 0
        for number in ENDING:
            signal.signal(number, self._take)

    def _take(self, number, _):
        if self.child is None:
            self.early = number
        elif number != signal.SIGINT or not sys.stdin.isatty():  # a terminal has told both
            self.child.send_signal(number)

    def lead_to(self, child):
        self.child = child
        if self.early:
            child.send_signal(self.early)


def run(hosts, command, signals):
    """The command's status, as a shell tells it."""
    listed = hosts.folder / "hosts"
    listed.write_text("".join(name + "\n" for name in hosts.names))
    environment = {**os.environ, "PBS_NODEFILE": str(listed), "HOSTS": ",".join(hosts.names), "HIROBA_SSH": hosts.enter}
    environment.pop("SLURM_JOB_NODELIST", None)
    if signals.early:
        return 128 + signals.early
    child = subprocess.Popen(hosts.at_home(*command), env=environment)
    signals.lead_to(child)
    status = child.wait()
    return status if status >= 0 else 128 - status


def main():
    options = parse()
    if shutil.which(options.command[0]) is None:
        print(f"two-hosts.sh: no command {options.command[0]}", file=sys.stderr)
        return 127
    signals = Signals()
    if missing := host_nets.why_missing():
        print(f"two-hosts.sh: {missing}", file=sys.stderr)
        return 78
    with host_nets.Hosts(options.hosts, traps=False, mtu=options.mtu, cores=options.cores) as hosts:
        return run(hosts, options.command, signals)


if __name__ == "__main__":
    sys.exit(main())
