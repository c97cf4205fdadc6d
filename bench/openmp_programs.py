#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long do the example programs take on hiroba, beside libgomp and beside one thread?

Every row is one program measured in one go: its variants run in turn, A B C A B C ..., and the
medians of what the program itself reports as seconds are compared. Every run must verify.

    openmp_programs.py --hiroba build/bin/hiroba --examples build/examples [--repeat 5] [--json] [--record FILE]
"""
import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "test/cluster"))
import record  # noqa: E402
from clean_environment import clean_environment  # noqa: E402

SECONDS = re.compile(r"seconds\s+([0-9.]+)")
ROWS = [
    # name, arguments, sequential program or None, as the results call it
    ("ep", ["A"], None, "NAS EP, class A"),
    ("cg", ["A"], "cg-serial", "NAS CG, class A"),
    ("heat", ["1024", "400"], None, "heat, 1024², 400 steps"),
]


def run(command, threads):
    environment = clean_environment()
    environment["OMP_NUM_THREADS"] = str(threads)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600,
                          check=False)
    found = SECONDS.search(done.stdout)
    if done.returncode != 0 or "VERIFICATION SUCCESSFUL" not in done.stdout or not found:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return float(found.group(1))


def variants(hiroba, folder, name, arguments, serial):
    program = [str(folder / name), *arguments]
    yield "sequential", ([str(folder / (serial or name)), *arguments], 1)
    yield "libgomp 1", (program, 1)
    yield "hiroba -n 1", ([hiroba, "run", "-n", "1", "--threads", "1", *program], 1)
    yield "libgomp 2", (program, 2)
    yield "hiroba -n 2", ([hiroba, "run", "-n", "2", "--threads", "1", *program], 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--examples", required=True, type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--record", help="file to add the figures to")
    options = parser.parse_args()
    for name, arguments, serial, title in ROWS:
        if options.only not in (None, name):
            continue
        candidates = dict(variants(options.hiroba, options.examples, name, arguments, serial))
        seconds = {label: [] for label in candidates}
        for _ in range(options.repeat):
            for label, (command, threads) in candidates.items():
                seconds[label].append(run(command, threads))
        median = {label: statistics.median(each) for label, each in seconds.items()}
        if options.record:
            record.append(options.record, options.hiroba, {
                "program": title, "one thread": f"{median['sequential']:.2f} s",
                "libgomp, 2 threads": f"{median['libgomp 2']:.2f} s",
                "hiroba 2 nodes × 1 thread": f"{median['hiroba -n 2']:.2f} s"})
        row = {"program": " ".join([name, *arguments]), **{k: round(v, 3) for k, v in median.items()},
               "n1/libgomp1": round(median["hiroba -n 1"] / median["libgomp 1"], 3),
               "n2/libgomp2": round(median["hiroba -n 2"] / median["libgomp 2"], 3),
               "n2/sequential": round(median["hiroba -n 2"] / median["sequential"], 3)}
        print(json.dumps(row) if options.json else
              "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
