#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What each OpenMP construct costs, in microseconds: on nodes of hiroba and with libgomp, in turns.

    bench/openmp_constructs.py --hiroba build/bin/hiroba [OTHER/bin/hiroba ...] [--nodes 2 4]
        [--threads 1] [--providers shm udp] [--rounds 3] [--sample-us 2000] [--only NAME] [--json]

Each round runs libgomp with as many threads, then each command with each number of nodes over each
provider: A B C A B C. A figure is the smallest sample of all rounds: what others do on the machine only
adds. Medians and 90th percentiles are in --json. The measured program checks what its constructs compute (bench/openmp/constructs.c).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().parent / "openmp" / "constructs.c"
LIMIT_SECONDS = 900


def figures_of(command, words, environment):
    """{construct: [median, least, 90th percentile]} of one run."""
    run = subprocess.run(command + words, env={**os.environ, **environment}, capture_output=True,
                         text=True, timeout=LIMIT_SECONDS)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {run.returncode}: {run.stdout[-300:]}{run.stderr}")
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    return {line[0]: [float(number) for number in line[1:]] for line in lines}


def variants_of(options, program):
    """(title, command, environment) of everything that is compared."""
    all_variants = []
    for nodes in options.nodes:
        threads = nodes * options.threads
        title = f"libgomp, {threads} threads"
        if title not in [variant[0] for variant in all_variants]:
            all_variants.append((title, [program], {"OMP_NUM_THREADS": str(threads)}))
    for nodes in options.nodes:
        for provider in options.providers:
            for hiroba in options.hiroba:
                which = f" ({hiroba})" if len(options.hiroba) > 1 else ""
                command = [hiroba, "run", "-n", str(nodes), "-t", str(options.threads), program]
                all_variants.append((f"{nodes} nodes x {options.threads}, {provider}{which}",
                                     command, {"HIROBA_PROVIDER": provider}))
    return all_variants


def print_table(results):
    """A Markdown table, a row for each construct."""
    titles = list(results)
    print("| construct, µs | " + " | ".join(titles) + " |")
    print("|---" * (len(titles) + 1) + "|")
    for construct in results[titles[0]]:
        cells = [f"{results[title][construct]:.2f}" for title in titles]
        print(f"| {construct} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hiroba", nargs="+", required=True)
    parser.add_argument("--nodes", type=int, nargs="+", default=[2])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--providers", nargs="+", default=["shm"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample-us", default="2000")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    words = [options.sample_us] + ([options.only] if options.only else [])
    rounds = {}
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "constructs")
        subprocess.run(["gcc", "-O2", "-fopenmp", PROGRAM, "-o", program], check=True)
        variants = variants_of(options, program)
        for _ in range(options.rounds):
            for title, command, environment in variants:
                rounds.setdefault(title, []).append(figures_of(command, words, environment))
    results = {title: {name: min(one[name][1] for one in runs) for name in runs[0]}
               for title, runs in rounds.items()}
    if options.json:
        json.dump({"unit": "us", "least": results, "rounds": rounds}, sys.stdout,
                  indent=1)
        print()
    else:
        print_table(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
