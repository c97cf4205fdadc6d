# SPDX-License-Identifier: BSD-3-Clause
"""Hosts for tests: network namespaces, each joined to a bridge by a pair of veth devices.

The bridge lies in a namespace of its own, in which the launcher runs too: nothing of the machine's
own network is touched. Whatever was made is removed at the end, also after a failure.
"""
import os
import subprocess
import time

PREFIX = "hhost"


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=20)


def why_missing():
    """Why this machine cannot have such hosts; empty when it can."""
    name = f"{PREFIX}{os.getpid()}t"
    try:
        made = ip("netns", "add", name, check=False)
    except FileNotFoundError:
        return "there is no ip command (package iproute2)"
    if made.returncode != 0:
        return f"network namespaces are not allowed here: {made.stderr.strip()}"
    try:
        veth = ip("-n", name, "link", "add", f"{PREFIX}v", "type", "bridge", check=False)
        return "" if veth.returncode == 0 else f"no bridge device: {veth.stderr.strip()}"
    finally:
        ip("netns", "del", name, check=False)


class Hosts:
    """`names[i]` is a namespace with address 10.77.0.i+1 on device eth0; `home` is the launcher's,
    with 10.77.0.100. Each host also has a device that leads nowhere, which nobody must pick."""

    def __init__(self, count):
        self.home = f"{PREFIX}{os.getpid()}h"
        self.names = [f"{PREFIX}{os.getpid()}n{i}" for i in range(count)]

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        ip("netns", "add", self.home)
        ip("-n", self.home, "link", "set", "lo", "up")
        ip("-n", self.home, "link", "add", "br0", "type", "bridge")
        ip("-n", self.home, "addr", "add", "10.77.0.100/24", "dev", "br0")
        ip("-n", self.home, "link", "set", "br0", "up")
        for i, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            # First in the kernel's list, up, and leading nowhere; a bridge as of containers.
            ip("-n", name, "link", "add", "aaa0", "type", "veth", "peer", "name", "aaa1")
            ip("-n", name, "addr", "add", "192.168.55.1/24", "dev", "aaa0")
            ip("-n", name, "link", "set", "aaa0", "up")
            ip("-n", name, "link", "set", "aaa1", "up")
            ip("-n", name, "link", "add", "docker0", "type", "bridge")
            ip("-n", name, "addr", "add", "172.17.0.1/16", "dev", "docker0")
            ip("-n", name, "link", "set", "docker0", "up")
            ip("-n", self.home, "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0",
               "netns", name)
            ip("-n", self.home, "link", "set", f"port{i}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def __exit__(self, *_):
        for name in [*self.names, self.home]:
            for pid in self.processes(name):
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            ip("netns", "del", name, check=False)

    def cut(self, index):
        """The host vanishes from the network without a word."""
        ip("-n", self.home, "link", "set", f"port{index}", "down")

    def mend(self, index):
        ip("-n", self.home, "link", "set", f"port{index}", "up")
        # The kernel takes a while to see the carrier, and remembers whom it did not reach.
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if "state UP" in ip("-n", self.names[index], "link", "show", "eth0").stdout:
                break
            time.sleep(0.05)
        for name in [self.home, *self.names]:
            ip("-n", name, "neigh", "flush", "all")

    @staticmethod
    def processes(name):
        listed = ip("netns", "pids", name, check=False)
        return [int(word) for word in listed.stdout.split()]

    def at_home(self, *command):
        return ["ip", "netns", "exec", self.home, *command]
