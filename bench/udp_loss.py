#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What do lost datagrams cost a stream of writes over udp?

Runs `hiroba perf bandwidth` in turn with and without loss injected below the protocol, each way at
each end, and compares the medians. Ends with status 1 if the throughput with loss is below --least
of the one without.

    udp_loss.py --hiroba build/bin/hiroba [--loss 1] [--repeat 3] [--least 0.2]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys


def microseconds(options, loss):
    environment = {"HIROBA_REGIONS": "spread", **os.environ, "HIROBA_UDP_LOSS": str(loss)}
    command = [options.hiroba, "perf", "bandwidth", "--provider", "udp", "--bytes", options.bytes,
               "--milliseconds", str(options.milliseconds), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)["median_ns"] / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--loss", type=int, default=1, help="per cent")
    parser.add_argument("--bytes", default="1M")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--milliseconds", type=int, default=500)
    parser.add_argument("--least", type=float, default=0.2)
    options = parser.parse_args()
    taken = {0: [], options.loss: []}
    for _ in range(options.repeat):
        for loss, runs in taken.items():
            runs.append(microseconds(options, loss))
    without, with_loss = (statistics.median(runs) for runs in taken.values())
    share = without / with_loss
    print(f"{options.bytes} writes: {without:.0f} us without loss, {with_loss:.0f} us with "
          f"{options.loss} %: throughput {share:.2f} of lossless (least {options.least})")
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
