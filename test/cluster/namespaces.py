#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the conformance suite over a network of its own: two namespaces joined by a wire.

Nodes with even ranks are in one namespace, those with odd ranks in the other, so provider udp, and auto
between them, use the addresses, the routes and the MTU of a real interface instead of loopback.

    namespaces.py --tests build/test_conformance --filter '*Stress*/udp_2'    one test
    namespaces.py --tests build/test_conformance --mtu 9000                   everything over jumbo frames

Status 77: this machine or user may not make namespaces.
"""
import argparse
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import host_nets  # noqa: E402

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", required=True)
    parser.add_argument("--filter", default="*/udp_*:*/auto_*")
    parser.add_argument("--mtu", type=int, default=1500)
    options = parser.parse_args()
    if missing := host_nets.why_missing():
        print(f"skipped: {missing}")
        return SKIPPED
    with host_nets.Hosts(2, both=True, traps=False, mtu=options.mtu) as hosts:
        environment = dict(os.environ, HIROBA_TEST_NETNS=hosts.names[0].removesuffix("0"))
        return subprocess.run([options.tests, f"--gtest_filter={options.filter}"],
                              env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
