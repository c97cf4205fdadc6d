#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the basic-layer samples of the original ACP library, untouched, and checks their results.

Usage: original_samples.py --hiroba BIN --library FOLDER --original CHECKOUT [--provider P ...]
CHECKOUT is a checkout of github.com/project-ace/ACP; only sample/bl of it is read, and the clock of
src/bl/udp/acpbl_sync.h that two samples use. Nothing of it is kept. Samples acp_tp*.c include a
header that the original does not have either.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"

# (sample, ranks, arguments of hiroba run, lines that must be there: pattern -> how often)
SAMPLES = [
    ("ib/acpbl_test.c", 3, [], {r"^rank 0 mygm\[1\] c$": 1, r"^rank 1 mygm\[1\] a$": 1,
                                r"^rank 2 mygm\[1\] b$": 1}),
    # 100 + 100; compared with 100: 10000; swapped: 50; 100 ^ 100; 100 | 100 and 100 & 100.
    ("ib/acpbl_test_atomic.c", 2, [], {r"^rank 0 myga\[0\] 200 myga\[1\] 1111$": 1,
                                       r"^rank 0 myga\[0\] 10000 myga\[1\] 1111$": 1,
                                       r"^rank 0 myga\[0\] 50 myga\[1\] 1111$": 1,
                                       r"^rank 0 myga\[0\] 0 myga\[1\] 1111$": 1,
                                       r"^rank 0 myga\[0\] 100 myga\[1\] 1111$": 2,
                                       r"^rank 1 myga\[0\] 100 myga\[1\] 100$": 6}),
    ("ib/acpbl_test_atomic8.c", 2, [], {r"^rank 1 mygm\[0\] 100 mygm\[1\] 100$": 6,
                                        r"^rank 0 mygm\[0\] 200 ": 1}),
    ("ib/acpbl_test_order_handle.c", 3, [], {r"^rank 0 mygm a c c$": 1, r"^rank 1 mygm b a a$": 1,
                                             r"^rank 2 mygm c b b$": 1}),
    ("ib/acpbl_test_rm.c", 3, [], {r"^2:rank 2 mygm\[255\]\[0\] C$": 1,
                                   r"^2:rank 2 mygm\[255\]\[1\] B$": 1}),
    # Rank 1 copies rank 2's word without waiting until rank 2 has stored it: 0 or 2.
    ("ib/acpbl_test_rr.c", 3, [], {r"^rank 0 sm\[0\] 0 sm\[1\] [02]$": 1,
                                   r"^rank 2 sm\[0\] 2 sm\[1\] 0$": 1}),
    # The second word of ranks 1 and 2 is whatever malloc() gave them.
    ("ib/acpbl_test_rr2.c", 3, [], {r"^rank 0 myga\[0\] 1 myga\[1\] 111111111$": 1,
                                    r"^rank 1 myga\[0\] 111 ": 1,
                                    r"^rank 2 myga\[0\] 111111111 ": 1}),
    ("tofu/atomic.c", 2, [], {r"^rank1: value = cafebae8$": 1, r"^rank0: result = cafebabe$": 1}),
    ("tofu2/atomic.c", 2, [], {r"^rank1: value = cafebae8$": 1, r"^rank0: result = cafebabe$": 1}),
    ("tofu/inifini.c", 3, [], {r"^rank = [012]$": 3}),
    ("tofu2/inifini.c", 3, [], {r"^rank = [012]$": 3}),
    ("tofu/remote2remote.c", 3, [], {r"^rank2: dstbuf = 42$": 1}),
    ("tofu2/remote2remote.c", 3, [], {r"^rank2: dstbuf = 42$": 1}),
    # Speed only; starter memory up to 4 MiB is copied.
    ("udp/acpbl_udp_test.c", 3, ["--starter-memory", "8M"], {r"^ +4194304 +10 ": 7}),
    ("udp/acpbl_udp_test2.c", 3, ["--starter-memory", "8M"], {r"^ +4194304 +10 ": 4}),
]


def build(options, sample, place):
    """The program of `sample`. Without optimization: some watch variables that are not volatile."""
    program = place / sample.replace("/", "_")[:-2]
    command = ["gcc", "-O0", "-w", f"-I{INCLUDE}", f"-I{options.original / 'src/bl/udp'}",
               str(options.original / "sample/bl" / sample), "-o", str(program),
               f"-L{options.library}", "-lacp", f"-Wl,-rpath,{options.library.resolve()}"]
    return program, subprocess.run(command, capture_output=True, text=True)


def run(options, program, sample, provider):
    name, ranks, words, wanted = sample
    command = [str(options.hiroba), "run", "-n", str(ranks), *words, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "HIROBA_PROVIDER": provider})
    faults = [f"status {done.returncode}: {done.stderr.strip()}"] if done.returncode else []
    for pattern, times in wanted.items():
        found = len(re.findall(pattern, done.stdout, re.MULTILINE))
        if found != times:
            faults.append(f"{pattern} {found} times, not {times}")
    print(f"{provider} {name}: {'right' if not faults else '; '.join(faults)}", flush=True)
    return not faults


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--hiroba", type=Path, required=True)
    words.add_argument("--library", type=Path, required=True)
    words.add_argument("--original", type=Path, required=True)
    words.add_argument("--provider", nargs="+", default=["shm", "udp"])
    options = words.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for sample in SAMPLES:
            program, built = build(options, sample[0], Path(folder))
            if built.returncode != 0:
                print(f"{sample[0]} does not compile: {built.stderr}")
                good = False
                continue
            for provider in options.provider:
                good = run(options, program, sample, provider) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
