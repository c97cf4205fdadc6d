#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One stream between two hosts, beside iperf3's over the same wire: hosts are network namespaces, each bound to a core of
its own. In turns, medians.

    beside_iperf3.py --hiroba build/bin/hiroba [--mtu 1500 9000] [--repeat 5] [--encrypt] [--bytes 1M]

As root; needs iperf3 (Debian's package of that name). `writes` are those of `hiroba perf bandwidth`; iperf3 sends by TCP.
Prints GB/s of both and their ratio; .9 is asked for. Figures of a machine with other work are figures of nothing.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "test/cluster"))
import host_nets  # noqa: E402
from clean_environment import clean_environment  # noqa: E402


def on_host(hosts, index, *command):
    return [*hosts.enter.split(), hosts.names[index], *command]


@contextlib.contextmanager
def served(hosts):
    """iperf3 listens on the second host."""
    server = subprocess.Popen(on_host(hosts, 1, "iperf3", "--server"), stdout=subprocess.DEVNULL)
    try:
        while "5201" not in subprocess.run(on_host(hosts, 1, "ss", "-ltn"), capture_output=True, text=True,
                                           check=True).stdout:
            if server.poll() is not None:
                sys.exit("beside_iperf3.py: iperf3 does not listen")
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


def by_iperf3(hosts, seconds):
    done = subprocess.run(on_host(hosts, 0, "iperf3", "--client", hosts.address(2), "--time", str(seconds), "--json"),
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 8e9


def by_hiroba(hosts, options, seconds):
    command = [options.hiroba, "perf", "bandwidth", "--bytes", options.bytes, "--hosts", ",".join(hosts.names), "--ssh",
               hosts.enter, "--milliseconds", str(1000 * seconds), "--json"]
    environment = {**clean_environment(), "HIROBA_ENCRYPT": "on" if options.encrypt else "off"}
    done = subprocess.run(hosts.at_home(*command), env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:  # also where what landed is wrong
        sys.exit(f"{' '.join(command)}: status {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}")
    row = json.loads(done.stdout)
    return row["bytes"] / row["median_ns"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hiroba", required=True, type=os.path.abspath)
    parser.add_argument("--mtu", nargs="+", type=int, default=[1500, 9000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--bytes", default="1M")
    parser.add_argument("--encrypt", action="store_true", help="HIROBA_ENCRYPT=on")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    why = host_nets.why_missing() or ("there is no iperf3" if shutil.which("iperf3") is None else "")
    if why or len(cores) < 2:
        sys.exit(f"beside_iperf3.py: {why or 'two hosts need two cores'}")
    print(f"{'mtu':>5} {'iperf3':>8} {'writes':>8}  GB/s    ratio (of each turn)")
    for mtu in options.mtu:
        theirs, ours = [], []
        with host_nets.Hosts(2, traps=False, mtu=mtu, cores=cores[:2]) as hosts, served(hosts):
            for _ in range(options.repeat):
                theirs.append(by_iperf3(hosts, options.seconds))
                ours.append(by_hiroba(hosts, options, options.seconds))
        ratios = " ".join(f"{mine / other:.2f}" for mine, other in zip(ours, theirs))
        one, two = statistics.median(theirs), statistics.median(ours)
        print(f"{mtu:5} {one:8.2f} {two:8.2f}        {two / one:.2f} ({ratios})", flush=True)


if __name__ == "__main__":
    main()
