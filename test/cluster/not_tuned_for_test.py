#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What bench/not_tuned_for.py and its kin make of what programs print: a wrong answer, a node that stays away, a run that is too
long and a program that tells no time are each said to be so, and never become figures."""
import argparse
import contextlib
import io
import os
import re
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import answers  # noqa: E402
import no_cliff  # noqa: E402
import not_tuned_for  # noqa: E402
import page_costs  # noqa: E402
import public_programs  # noqa: E402
from not_tuned_for import Outcome  # noqa: E402
from public_programs import Figure, Row  # noqa: E402

os.environ["GOMP_SPINCOUNT"] = "0"  # libgomp's threads that spin take minutes where others compute

TABLE = "counter  node 0  node 1  all\\nparallel_regions  4  3  7\\nregions_stayed  -  2  2\\n"


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_folder(self, name, **files):
        path = self.folder / name
        path.mkdir()
        for file, text in files.items():
            (path / file).write_text(text)
        return path


class Answers(Folders):
    def expect(self, row, ours, theirs, wrong):
        places = [self.run_folder(name, **files) for name, files in (("ours", ours), ("theirs", theirs))]
        if wrong:
            with self.assertRaisesRegex(answers.Wrong, wrong):
                answers.check(row, *places)
        else:
            answers.check(row, *places)

    def row(self, **words):
        return Row("adi", "", (), **words)

    def test_verification_once_is_right(self):
        self.expect(self.row(right="^PASS$"), {"stdout": "x\nPASS\n"}, {"stdout": ""}, "")

    def test_no_verification_is_wrong(self):
        self.expect(self.row(right="^PASS$"), {"stdout": "FAIL\n"}, {"stdout": "PASS\n"}, "0 times")

    def test_two_nodes_that_both_verify_are_wrong(self):
        self.expect(self.row(right="PASS"), {"stdout": "PASS\nPASS\n"}, {"stdout": ""}, "2 times")

    def test_npb_that_fails_is_no_success(self):
        right = public_programs.NPB_RIGHT
        self.assertTrue(re.search(right, " Verification    =               SUCCESSFUL"))
        self.assertFalse(re.search(right, " Verification    =             UNSUCCESSFUL"))

    def test_a_number_within_tolerance_is_right(self):
        self.expect(self.row(same=(r"^sum (\S+)",), tolerance=.01), {"stdout": "sum 100.5\n"}, {"stdout": "sum 100\n"}, "")

    def test_a_number_beyond_it_is_wrong(self):
        self.expect(self.row(same=(r"^sum (\S+)",), tolerance=.001), {"stdout": "sum 100.5\n"}, {"stdout": "sum 100\n"}, "100.5")

    def test_nan_is_wrong(self):
        self.expect(self.row(same=(r"^sum (\S+)",), tolerance=.5), {"stdout": "sum nan\n"}, {"stdout": "sum 100\n"}, "nan")

    def test_a_number_that_is_missing_is_wrong(self):
        self.expect(self.row(same=(r"^sum (\S+)",)), {"stdout": "\n"}, {"stdout": "sum 1\n"}, "0 times")

    def test_lines_of_times_do_not_count(self):
        self.expect(self.row(files=("stdout",), unlike="timer"), {"stdout": "1\ntimer 5\n"}, {"stdout": "1\ntimer 6\n"}, "")

    def test_what_is_not_sound_is_wrong(self):
        row = self.row(sound=public_programs.points_of_centers)
        self.expect(row, {"centers.txt": "7\n8000.0\n.5 .5 \n\n9\n192.0\n.1 .2 \n\n"}, {}, "")
        self.run_case(row, "7\n8000.0\n.5 .5 \n\n9\n191.0\n.1 .2 \n\n", "8191 of 8192")
        self.run_case(row, "7\n", "0 of 8192")
        self.run_case(row, "7\nnan of it\n", "could not convert")

    def run_case(self, row, centers, wrong):
        (self.folder / "ours/centers.txt").write_text(centers)
        with self.assertRaisesRegex(answers.Wrong, wrong):
            answers.check(row, self.folder / "ours", self.folder / "theirs")

    def test_another_file_is_wrong(self):
        self.expect(self.row(files=("out",)), {"out": "1 2\n"}, {"out": "1 3\n"}, "not as libgomp's")

    def test_no_file_is_wrong(self):
        self.expect(self.row(files=("out",)), {}, {"out": "1 3\n"}, "writes no out")

    def test_a_shorter_file_is_wrong_at_any_tolerance(self):
        self.expect(self.row(files=("out",), tolerance=.5), {"out": "1\n"}, {"out": "1 2\n"}, "1 words")


class Tables(Folders):
    def test_each_node_must_have_run_a_region(self):
        not_tuned_for.check_nodes("parallel_regions  4  3  7\n", 2)
        for table in ("parallel_regions  4  0  4\n", "parallel_regions  4  4\n", ""):
            with self.assertRaises(not_tuned_for.Failed):
                not_tuned_for.check_nodes(table, 2)

    def test_seconds_are_told_once(self):
        figure = Figure("x", 1, r"([\d.]+) ms", scale=.001)
        self.assertEqual(not_tuned_for.seconds_of(figure, self.run_folder("one", stdout="250 ms\n"), 9), .25)
        self.assertEqual(not_tuned_for.seconds_of(Figure("x", 1), self.run_folder("none", stdout=""), 9), 9)
        with self.assertRaises(not_tuned_for.Failed):
            not_tuned_for.seconds_of(figure, self.run_folder("two", stdout="250 ms\n250 ms\n"), 9)

    def test_no_time_and_more_than_there_was_are_no_seconds(self):
        figure = Figure("x", 1, r"([\d.]+) s")
        for name, text in (("none", "0.000 s"), ("more", "9.5 s")):
            with self.assertRaises(not_tuned_for.Failed):
                not_tuned_for.seconds_of(figure, self.run_folder(name, stdout=text), 9)

    def test_cells_have_the_form_of_the_record(self):
        self.assertEqual(not_tuned_for.cells(Outcome("a", 2, .5, 1.25), 60), ("a", ".500 s", "1.25 s", "2.50"))
        self.assertEqual(not_tuned_for.cells(Outcome("a", 2, .5, failure="over"), 60), ("a", ".500 s", "over 60 s", "over 120"))
        self.assertEqual(not_tuned_for.cells(Outcome("a", 2, .5, 1.25, failure="wrong answer", threads=1), 60),
                         ("a", ".500 s (one thread)", "wrong answer", "–"))

    def test_a_failure_is_never_met(self):
        self.assertTrue(Outcome("a", 2, 1, 2).met)
        self.assertFalse(Outcome("a", 2, 1, 2.1).met)
        self.assertFalse(Outcome("a", 2, 1, .1, failure="wrong answer").met)

    def test_the_mean_counts_what_is_measured_often_once(self):
        outcomes = [Outcome("a", 1, 1, 8), Outcome("b", 1, 1, 1, once="w"), Outcome("c", 1, 1, 1, once="w"), Outcome("d", 1, 1, 9, "over")]
        self.assertAlmostEqual(not_tuned_for.mean_of(outcomes), 8 ** .5)
        self.assertIsNone(not_tuned_for.mean_of([]))

    def test_rows_can_be_built_and_read(self):
        names = [figure.name for row in public_programs.ROWS for figure in row.figures]
        self.assertEqual(len(names), len(set(names)))
        for row in public_programs.ROWS + public_programs.TINY_ROWS + page_costs.ROWS:
            self.assertTrue(public_programs.needs(row) <= set(public_programs.BUILDS))
            self.assertTrue(row.right or row.same or row.files or row.sound, row.program)
            for expression in [*row.same, *(figure.seconds for figure in row.figures if figure.seconds)]:
                self.assertEqual(re.compile(expression).groups, 1, expression)


class Jobs(Folders):
    """The whole way, with a script in hiroba's stead."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.sources = Path(folder.name)

    def take(self, script, *words):
        hiroba = self.folder / "hiroba"
        hiroba.write_text(f'#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\n{script}\n')
        hiroba.chmod(0o755)
        options = not_tuned_for.parse(["--hiroba", str(hiroba), "--sources", str(self.sources), "--rounds", "1", "--tiny", *words])
        with contextlib.redirect_stdout(io.StringIO()) as told:
            outcomes = not_tuned_for.measure(not_tuned_for.chosen(options), options)
        return outcomes[0], told.getvalue()

    def test_a_right_answer_of_two_nodes_is_measured(self):
        outcome, _ = self.take(f'printf "{TABLE}" >&2; OMP_NUM_THREADS=1 exec "$@"')
        self.assertEqual(outcome.failure, "")
        self.assertGreater(outcome.ratio, 0)

    def test_a_wrong_answer_is_recorded_as_such(self):
        outcome, told = self.take(f'printf "{TABLE}" >&2; "$@" | sed "s/^sum ./sum 9/"')
        self.assertEqual(outcome.failure, "wrong answer")
        self.assertIsNone(outcome.ratio)
        self.assertGreater(outcome.libgomp, 0)
        self.assertIn("NOT met", told)

    def test_a_wrong_answer_of_a_timed_run_is_found_too(self):
        outcome, _ = self.take(f'if [ -n "$HIROBA_STATS" ]; then printf "{TABLE}" >&2; exec "$@"; fi; "$@" | sed "s/^sum ./sum 9/"')
        self.assertEqual(outcome.failure, "wrong answer")

    def test_a_node_without_a_region_is_told(self):
        outcome, _ = self.take('printf "parallel_regions  4  0  4\\n" >&2; exec "$@"')
        self.assertEqual(outcome.failure, "a node took no part")

    def test_a_run_that_is_too_long_is_ended(self):
        runs, begun = not_tuned_for.Runs(None, {}), time.monotonic()
        with self.assertRaises(not_tuned_for.Failed) as failed:
            runs.run(["sleep", "600"], {}, self.folder, 0, .1)
        self.assertEqual(failed.exception.word, "over")
        self.assertLess(time.monotonic() - begun, 300)

    def test_a_status_is_told(self):
        outcome, told = self.take("echo no such thing >&2; exit 78")
        self.assertEqual(outcome.failure, "status 78")
        self.assertIn("no such thing", told)

    def test_a_source_that_lacks_is_told(self):
        options = argparse.Namespace(sources=self.folder, only="GAP bfs", tiny=False, long=False)
        row, = not_tuned_for.chosen(options)
        self.assertEqual(not_tuned_for.missing_for(row, self.folder), [f"git clone https://github.com/sbeamer/gapbs {self.folder}/gapbs"])


class Settings(unittest.TestCase):
    def options(self, *words):
        return not_tuned_for.parse(["--hiroba", "x", "--sources", "y", *words])

    def test_a_dearer_fault_doubles_the_bounds(self):
        options = self.options("--dear", "--set", "HIROBA_PROVIDER=udp")
        self.assertEqual(not_tuned_for.settings_of(options), {"HIROBA_DEARER_FAULT": "15", "HIROBA_PROVIDER": "udp"})
        self.assertEqual(not_tuned_for.bound_of(Figure("x", 1.5), options), 3)
        self.assertEqual(not_tuned_for.marked("x", options), "x, each fault 15 us dearer")

    def test_one_node_has_one_bound(self):
        options = self.options("--one-node")
        self.assertEqual(not_tuned_for.bound_of(Figure("x", 5), options), 1.03)
        self.assertEqual(not_tuned_for.settings_of(options), {})

    def test_long_rows_are_left_out(self):
        names = [figure.name for row in not_tuned_for.chosen(self.options("--only", "LU, class A")) for figure in row.figures]
        self.assertEqual(names, [])
        self.assertEqual(len(not_tuned_for.chosen(self.options("--only", "LU, class A", "--long"))), 2)


class Cliffs(unittest.TestCase):
    ROWS = [{"size": size, "work": float(work), "libgomp": 1.0, "hiroba": seconds}
            for size, work, seconds in ((1, 1, 1.0), (2, 4, 4.0), (3, 8, 12.0))]

    def test_growth_is_by_doubling(self):
        self.assertAlmostEqual(no_cliff.growth(1, 4, (1, 4)), 2)
        self.assertEqual([(one["size"], other["size"]) for one, other, *_ in no_cliff.cliffs(self.ROWS)], [(2, 3)])

    def test_each_size_is_more_work_and_can_be_run(self):
        for curve in no_cliff.CURVES.values():
            work = [curve.work(size) for size in curve.sizes]
            self.assertEqual(work, sorted(set(work)))
            self.assertTrue(all(curve.row(size).program in public_programs.BUILDS for size in curve.sizes))

    def test_the_plot_marks_it(self):
        facts = {"date": "d", "commit": "c", "machine": "m"}
        self.assertEqual(no_cliff.draw({"adi": self.ROWS}, facts).count("<circle"), 1)
        self.assertEqual(no_cliff.draw({"adi": self.ROWS[:2]}, facts).count("<circle"), 0)


class PageCosts(unittest.TestCase):
    def test_calls_are_of_all_nodes(self):
        table = page_costs.counters("counter  node 0  node 1  all\npage_calls  30  12  42\nbytes_fetched  8192  -  8192\n")
        self.assertEqual(page_costs.calls_a_page(table), (42, 2, 21))

    def test_nothing_moved_has_no_quotient(self):
        self.assertEqual(page_costs.calls_a_page({"page_calls": [3, 0], "bytes_fetched": [0, 0]}), (3, 0, None))


if __name__ == "__main__":
    unittest.main()
