#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The driver of the examples must find each way in which a run can be wrong."""

import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import run_examples  # noqa: E402

GOOD = "echo 'hiroba: participation node 0: regions 3' >&2\n" \
       "echo 'hiroba: participation node 1: regions 3' >&2\n"
TABLE = "printf 'counter node 0 node 1 all\\nparallel_regions  3  %s  3\\n' >&2\n"
BODY = "shift 5\n\"$@\"\nstatus=$?\n"


class Driver(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.write("cg", "echo 'CG S VERIFICATION SUCCESSFUL'")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        file = self.path / name
        file.write_text("#!/bin/sh\n" + text + "\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return file

    def run_with(self, launcher, **shape):
        hiroba = self.write("hiroba", launcher)
        case = run_examples.Case("cg", limit_s=shape.pop("limit_s", 20), **shape)
        passed, failed = run_examples.run_case(case, hiroba, self.path)
        return passed > 0 and failed == 0

    def test_a_good_run_passes(self):
        self.assertTrue(self.run_with(BODY + GOOD + "exit $status"))

    def test_the_row_of_the_table_counts_as_participation(self):
        self.assertTrue(self.run_with(BODY + TABLE % "3" + "exit $status"))
        self.assertFalse(self.run_with(BODY + TABLE % "-" + "exit $status"))
        self.assertFalse(self.run_with(BODY + TABLE % "0" + "exit $status"))

    def test_an_idle_node_fails(self):
        self.assertFalse(self.run_with(BODY + GOOD + "exit $status", nodes=3))

    def test_serial_copies_that_all_verify_fail(self):
        self.assertFalse(self.run_with(BODY + "\"$@\"\n" + GOOD + "exit $status"))

    def test_another_status_than_natively_fails(self):
        self.assertFalse(self.run_with(BODY + GOOD + "exit 3"))

    def test_a_run_that_does_not_verify_fails(self):
        self.assertFalse(self.run_with("echo 'CG S VERIFICATION FAILED'\n" + GOOD))

    def test_a_run_without_a_result_fails(self):
        self.assertFalse(self.run_with(GOOD))

    def test_a_hang_fails_and_leaves_no_process(self):
        marker = self.path / "pid"
        self.assertFalse(self.run_with(f"tail -f /dev/null & echo $! > {marker}; wait",
                                       limit_s=1))
        child = marker.read_text().strip()
        alive = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True)
        self.assertIn(alive.stdout.strip()[:1], ("", "Z"))

    def test_every_matrix_holds_every_example(self):
        for matrix in (run_examples.smoke_matrix, run_examples.full_matrix):
            examples = {case.example for case in matrix()}
            self.assertEqual(examples, {"ep", "cg", run_examples.STRONG, *run_examples.OTHERS})


if __name__ == "__main__":
    unittest.main()
