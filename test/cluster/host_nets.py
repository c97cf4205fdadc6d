# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that are network namespaces, each joined to a bridge by a pair of veth devices: for tests, for
benchmarks and, by scripts/two-hosts.sh, for users.

The bridge lies in a namespace of its own, in which the launcher runs too: nothing of the machine's
own network is touched. Whatever was made is removed at the end, also after a failure.
"""
import ctypes
import fcntl
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import threading
import time

PREFIX = "hhost"


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=300)


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


def open_tunnel(namespace, device):
    """A descriptor of `device`, which is a tunnel in that namespace and up as long as this is open;
    None where the machine has no such devices."""
    TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x1, 0x1000, 0x40000000
    opened = []

    def enter():  # a namespace is a thread's
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            with open(f"/run/netns/{namespace}") as entrance:
                if libc.setns(entrance.fileno(), CLONE_NEWNET) != 0:
                    return
            tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            opened.append(tunnel)
            fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
        except OSError:
            while opened:
                os.close(opened.pop())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return opened[0] if opened else None


class Hosts:
    """`names[i]` is a namespace with address 10.77.0.i+1 on device eth0; `home` is the launcher's,
    with 10.77.0.100. With `traps` each host also has devices that lead nowhere, which nobody must
    pick: aaa0, first in the kernel's list, docker0, a bridge, and tun0, a tunnel as of a private
    network, with the same addresses on every host.
    With `six` there is no IPv4 but on loopback; the addresses are fd77::i+1 and fd77::100. With
    `both` eth0 has addresses of both kinds.
    With `cores` what `enter` starts on host i runs on core cores[i % len(cores)] only."""

    def __init__(self, count, six=False, *, both=False, traps=True, mtu=1500, cores=()):
        tag = f"{os.getpid()}{'s' if six else ''}"
        self.six, self.both, self.traps, self.mtu, self.cores = six, both, traps, mtu, list(cores)
        self.home = f"{PREFIX}{tag}h"
        self.names = [f"{PREFIX}{tag}n{i}" for i in range(count)]
        self.tunnels = []
        self.folder = None
        self.enter = "ip netns exec"  # in place of ssh

    def address(self, number):
        return f"fd77::{number}" if self.six else f"10.77.0.{number}"

    def core(self, index):
        return self.cores[index % len(self.cores)]

    def _give(self, name, device, address):
        """The address, usable at once; the device is up."""
        words = [f"{address}/64", "nodad"] if ":" in address else [f"{address}/24"]
        ip("-n", name, "addr", "add", *words, "dev", device)
        ip("-n", name, "link", "set", device, "up")

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
        self._give(self.home, "br0", self.address(100))
        for i, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            if self.traps:
                self._set_traps(name)
            size = ["mtu", str(self.mtu)]
            ip("-n", self.home, "link", "add", f"port{i}", *size, "type", "veth", "peer", "name",
               "eth0", "netns", name, *size)
            ip("-n", self.home, "link", "set", f"port{i}", "master", "br0", "up")
            self._give(name, "eth0", self.address(i + 1))
            if self.both:
                self._give(name, "eth0", f"fd77::{i + 1}")
        for name in self.names:
            self._await_carrier(name)
        if self.cores:
            self._write_enter()

    def _set_traps(self, name):
        # First in the kernel's list, up, and leading nowhere; a bridge as of containers.
        ip("-n", name, "link", "add", "aaa0", "type", "veth", "peer", "name", "aaa1")
        self._give(name, "aaa0", "fd55::1" if self.six else "192.168.55.1")
        ip("-n", name, "link", "set", "aaa1", "up")
        ip("-n", name, "link", "add", "docker0", "type", "bridge")
        self._give(name, "docker0", "fd17::1" if self.six else "172.17.0.1")
        if (tunnel := open_tunnel(name, "tun0")) is not None:
            self.tunnels.append(tunnel)
            self._give(name, "tun0", "fd08::1" if self.six else "10.8.0.1")

    def _write_enter(self):
        """The command in place of ssh that binds what it starts to the host's core."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
        cases = "\n".join(f"{name}) core={self.core(i)};;" for i, name in enumerate(self.names))
        script = self.folder / "enter"
        script.write_text(f"#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}\n"
                          "*) echo \"no host $host here\" >&2; exit 255;;\nesac\n"
                          "exec taskset -c \"$core\" ip netns exec \"$host\" \"$@\"\n")
        script.chmod(0o755)
        self.enter = str(script)

    def _await_carrier(self, name, device="eth0"):
        """The kernel takes a while to see the other end."""
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline:
            if "state UP" in ip("-n", name, "link", "show", device).stdout:
                return
            time.sleep(0.05)

    def add_network(self, number):
        """Another wire between all: eth`number` with 10.`number`.0.i+1; 10.`number`.0.100 at home."""
        ip("-n", self.home, "link", "add", f"br{number}", "type", "bridge")
        self._give(self.home, f"br{number}", f"10.{number}.0.100")
        for i, name in enumerate(self.names):
            port = f"port{i}n{number}"
            ip("-n", self.home, "link", "add", port, "type", "veth", "peer", "name", f"eth{number}",
               "netns", name)
            ip("-n", self.home, "link", "set", port, "master", f"br{number}", "up")
            self._give(name, f"eth{number}", f"10.{number}.0.{i + 1}")
        for name in self.names:
            self._await_carrier(name, f"eth{number}")

    def remove_network(self, number):
        for i in range(len(self.names)):
            ip("-n", self.home, "link", "del", f"port{i}n{number}", check=False)
        ip("-n", self.home, "link", "del", f"br{number}", check=False)

    def __exit__(self, *_):
        for tunnel in self.tunnels:
            os.close(tunnel)
        self.tunnels = []
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
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
        self._await_carrier(self.names[index])
        # Who was not reached is remembered.
        for name in [self.home, *self.names]:
            ip("-n", name, "neigh", "flush", "all")

    def limit_datagrams(self, mtu):
        """The largest packet between any two hosts."""
        for i, name in enumerate(self.names):
            ip("-n", name, "link", "set", "eth0", "mtu", str(mtu))
            ip("-n", self.home, "link", "set", f"port{i}", "mtu", str(mtu))

    @staticmethod
    def processes(name):
        listed = ip("netns", "pids", name, check=False)
        return [int(word) for word in listed.stdout.split()]

    def at_home(self, *command):
        """With cores, on the first host's."""
        bound = ["taskset", "-c", str(self.core(0))] if self.cores else []
        return [*bound, "ip", "netns", "exec", self.home, *command]
