# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts share that draw how something grows with the number of nodes."""

import argparse
import csv
import pathlib
import subprocess
import sys


def run_and_draw(about, name, nodes, draw):
    """Runs --program, writes its table to NAME.csv, and what draw(rows) gives to NAME.svg. Returns the exit status."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--nodes", default=nodes)
    parser.add_argument("--out", default="docs/figures", type=pathlib.Path)
    options = parser.parse_args()
    run = subprocess.run([options.program, options.nodes], stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        print(f"{options.program} {options.nodes}: exit status {run.returncode}", file=sys.stderr)
        return run.returncode
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{name}.csv").write_text(run.stdout)
    (options.out / f"{name}.svg").write_text(draw(list(csv.DictReader(run.stdout.splitlines()))))
    print(run.stdout, end="")
    return 0
