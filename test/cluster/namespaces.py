#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the conformance suite over a network of its own: two namespaces joined by a veth pair.

Nodes with even ranks are in one namespace, those with odd ranks in the other, so provider udp, and auto
between them, use the addresses, the routes and the MTU of a real interface instead of loopback.

    namespaces.py --tests build/test_conformance --filter '*Stress*/udp_2'    one test
    namespaces.py --tests build/test_conformance --mtu 9000                   everything over jumbo frames

Status 77: this machine or user may not make namespaces.
"""
import argparse
import os
import subprocess
import sys

SKIPPED = 77


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


class Network:
    """Two namespaces <prefix>0 and <prefix>1 with addresses 10.97.5.1 and .2, fd97:5::1 and ::2."""

    def __init__(self, prefix, mtu):
        self.names = [prefix + "0", prefix + "1"]
        self.mtu = mtu

    def __enter__(self):
        self.remove()
        for name in self.names:
            ip("netns", "add", name)
        first, second = self.names
        ip("-n", first, "link", "add", "veth0", "mtu", str(self.mtu), "type", "veth", "peer", "name",
           "veth0", "netns", second, "mtu", str(self.mtu))
        for number, name in enumerate(self.names, 1):
            ip("-n", name, "address", "add", f"10.97.5.{number}/24", "dev", "veth0")
            ip("-n", name, "address", "add", f"fd97:5::{number}/64", "dev", "veth0", "nodad")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "veth0", "up")
        return self

    def remove(self):
        for name in self.names:
            ip("netns", "delete", name, check=False)

    def __exit__(self, *_):
        self.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", required=True)
    parser.add_argument("--filter", default="*/udp_*:*/auto_*")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--prefix", default=f"hudp{os.getpid()}_")
    options = parser.parse_args()
    try:
        with Network(options.prefix, options.mtu):
            environment = dict(os.environ, HIROBA_TEST_NETNS=options.prefix)
            return subprocess.run([options.tests, f"--gtest_filter={options.filter}"],
                                  env=environment, check=False).returncode
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", None) or error
        print(f"skipped: no network namespaces here: {detail}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
