#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs `hiroba perf` and the transport's own benchmark by turns, and prints both medians.

--tool ucx: provider ucx beside ucx_perftest (ucx-utils), over the transports of UCX_TLS.
--tool ib:  provider verbs beside ib_write_lat, ib_read_lat, ib_atomic_lat, ib_write_bw (perftest),
            on the first RDMA device.

By turns (A B A B), since both sides then meet the same other work. The ratio is of medians over the
rounds; their spread is printed, and says whether it means anything.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

# hiroba's measure, its bytes and threads, the tool's command, what turns its answer into hiroba's
# unit, and the ratio that is asked for at most.
UCX = [("put_latency", 8, 1, ["-t", "ucp_put_lat", "-s", "8", "-n", "20000"], "latency", 1.25),
       ("get_latency", 8, 1, ["-t", "ucp_get", "-s", "8", "-n", "20000", "-O", "1"], "latency",
        1.25),
       ("atomic_latency", 8, 1, ["-t", "ucp_fadd", "-s", "8", "-n", "20000", "-O", "1"], "latency",
        1.25),
       ("am_latency", 8, 1, ["-t", "ucp_am_lat", "-s", "8", "-n", "20000"], "round_trip", 1.25),
       ("message_rate", 8, 1, ["-t", "ucp_put_bw", "-s", "8", "-n", "200000"], "latency", None),
       # The tool's rate of one thread, of which .9 is asked for from two.
       ("message_rate", 8, 2, ["-t", "ucp_put_bw", "-s", "8", "-n", "200000"], "latency", 1 / .9),
       ("bandwidth", 65536, 1, ["-t", "ucp_put_bw", "-s", "65536", "-n", "20000"], "latency", None)]
IB = [("put_latency", 8, 1, ["ib_write_lat", "-s", "8", "-n", "2000"], "latency", 1.2),
      ("get_latency", 8, 1, ["ib_read_lat", "-s", "8", "-n", "2000"], "latency", 1.2),
      ("atomic_latency", 8, 1, ["ib_atomic_lat", "-n", "2000"], "latency", 1.2),
      ("bandwidth", 65536, 1, ["ib_write_bw", "-s", "65536", "-n", "1000"], "bandwidth", 1.2)]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def pair(server, client, seconds):
    """What the client prints, beside its server."""
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as serving:
        try:
            for _ in range(50):
                time.sleep(0.2)
                ran = subprocess.run(client, capture_output=True, text=True, timeout=seconds)
                if ran.returncode == 0:
                    return ran.stdout
                if serving.poll() is not None:
                    break
            raise SystemExit(f"{' '.join(client)}: status {ran.returncode}: {ran.stderr[-300:]}")
        finally:
            serving.terminate()


def of_ucx(words, unit, seconds):
    port = str(free_port())
    text = pair(["ucx_perftest", "-p", port],
                ["ucx_perftest", "127.0.0.1", "-p", port, "-f", *words], seconds)
    # The last line: iterations, then percentile, average and overall time in us.
    row = [line for line in text.splitlines() if re.match(r"^\s*(Final:)?\s*\d+\s", line)][-1]
    numbers = [float(n) for n in re.findall(r"[\d.]+", row)]
    us = numbers[3]
    return us * 1000 * (2 if unit == "round_trip" else 1)


def of_ib(words, unit, seconds):
    port = str(free_port())
    command = [*words, "-F", "-p", port]
    text = pair(command, [*command, "127.0.0.1"], seconds)
    row = [line.split() for line in text.splitlines() if re.match(r"^\s*\d+\s+\d+\s", line)][-1]
    if unit == "bandwidth":  # MB/s, of 2^20 bytes, on average
        return int(row[0]) / (float(row[3]) * (1 << 20)) * 1e9
    return float(row[4]) * 1000  # the typical one, in us


def of_hiroba(build, provider, test, size, threads, seconds):
    words = [str(build / "bin/hiroba"), "perf", test, "--json", "--provider", provider,
             "--bytes", str(size), "--milliseconds", "300"]
    if test == "atomic_latency":
        del words[-4:-2]
    if threads > 1:
        words += ["--threads", str(threads)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: status {ran.returncode}: {ran.stderr[-300:]}")
    return json.loads(ran.stdout.splitlines()[-1])["median_ns"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--tool", choices=["ucx", "ib"], required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=120, help="for one run")
    parser.add_argument("--only", default="", help="one measure")
    parser.add_argument("--strict", action="store_true", help="status 1 where a ratio is above")
    given = parser.parse_args()
    provider, cases, other = (("ucx", UCX, of_ucx) if given.tool == "ucx" else ("verbs", IB, of_ib))
    print(f"provider {provider}, UCX_TLS={os.environ.get('UCX_TLS', '')}, {given.rounds} rounds by "
          f"turns, load {os.getloadavg()[0]:.1f}")
    print(f"{'measure':<16}{'bytes':>7}{'hiroba ns':>22}{given.tool + ' ns':>22}{'ratio':>7}"
          "  asked")
    above = 0
    for test, size, threads, words, unit, most in cases:
        if given.only not in ("", test):
            continue
        ours, theirs = [], []
        for _ in range(given.rounds):
            ours.append(of_hiroba(given.build, provider, test, size, threads, given.seconds))
            theirs.append(other(words, unit, given.seconds))
        text = [f"{statistics.median(all_):.0f} ({min(all_):.0f}-{max(all_):.0f})"
                for all_ in (ours, theirs)]
        ratio = statistics.median(ours) / statistics.median(theirs)
        above += most is not None and ratio > most
        name = test if threads == 1 else f"{test} x{threads}"
        asked = "" if most is None else f"  <= {most:.2f}{'' if ratio <= most else '  ABOVE'}"
        print(f"{name:<16}{size:>7} {text[0]:>21} {text[1]:>21}{ratio:>7.2f}{asked}", flush=True)
    return 1 if given.strict and above else 0


if __name__ == "__main__":
    sys.exit(main())
