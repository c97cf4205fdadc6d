#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs on simulated nodes (`hiroba sim`): what each node has for itself, threads, time, ends,
and what is told of a run that fails.

Usage: sim_runs.py --hiroba HIROBA --program SIMULATED_USER --examples FOLDER [NAME...]
"""

import argparse
import subprocess
import sys
import unittest
from pathlib import Path

OPTIONS = None
STORM = ["--loss", "10", "--duplicate", "5", "--reorder", "30"]
EXAMPLES = [("net_histogram", "40", "3"), ("net_heat", "40", "20"), ("net_farm", "5"),
            ("kick_pingpong", "200"), ("kick_sieve", "500"), ("kick_plate", "4", "20")]


class SimRuns(unittest.TestCase):
    def run_it(self, *words, nodes=3, launch=(), status=0, program=None):
        """The lines of both streams; fails where the status is another."""
        done = subprocess.run([OPTIONS.hiroba, "sim", "-n", str(nodes), *launch,
                               program or OPTIONS.program, *words], text=True, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout.splitlines()

    def test_each_node_has_the_programs_variables_for_itself(self):
        said = self.run_it("variables", "one", "two")
        self.assertEqual(sorted(said), [f"node of {100 + node}: destroyed" for node in range(3)])

    def test_requests_reach_a_nodes_variables_while_others_have_their_turn(self):
        for nodes in (1, 2, 5):
            self.run_it("requests", nodes=nodes, launch=[*STORM, "--seeds", "3"])

    def test_threads_wait_for_each_other(self):
        for seed in ("1", "2", "3"):
            self.run_it("threads", launch=["--seed", seed])

    def test_waiting_takes_virtual_time(self):
        self.run_it("waits")

    def test_exceptions_are_each_threads_own(self):
        self.run_it("exceptions")

    def test_each_node_reads_its_options(self):
        said = self.run_it("-a", "waits", "-b")
        self.assertEqual(said.count("both options"), 3)

    def test_equal_seeds_give_equal_runs_and_others_do_not(self):
        runs = [self.run_it("order", nodes=4, launch=["--seed", seed, *STORM])
                for seed in ("1", "1", "2", "3", "4")]
        self.assertEqual(runs[0], runs[1])
        self.assertGreater(len(set(map(tuple, runs))), 1)

    def test_a_nodes_status_is_the_runs_and_its_command_is_said(self):
        said = self.run_it("status", "2", "7", status=7, launch=["--seed", "5", "--loss", "3"])
        self.assertRegex("\n".join(said), r"node 2 ended with status 7, after \d+ ns")
        self.assertEqual(said[-1], "hiroba: seed 5: status 7. Again: hiroba sim -n 3 --seed 5 "
                                   f"--loss 3 {OPTIONS.program} status 2 7.")

    def test_many_seeds_end_with_the_first_that_fails(self):
        said = self.run_it("order", launch=["--seeds", "4", "--seed", "10"])
        self.assertEqual(said[-1], "hiroba: seeds 10 to 13: every run ended with status 0.")
        said = self.run_it("status", "0", "3", launch=["--seeds", "4"], status=3)
        self.assertIn("hiroba: seed 1: status 3.", said[-1])

    def test_a_deadlock_ends_and_is_told(self):
        said = "\n".join(self.run_it("locked", status=78))
        self.assertRegex(said, "nodes 0, 1, 2(: every thread waits for another| not ended after)")

    def test_a_wait_that_nothing_ends_is_given_up(self):
        said = self.run_it("status", "9", "0", status=78, launch=["--limit", "20"])
        self.assertRegex("\n".join(said), "nodes 0, 1, 2 not ended after 1")

    def test_a_thread_that_never_waits_is_told(self):
        said = self.run_it("busy", status=78, launch=["--busy", "2"])
        self.assertRegex("\n".join(said), r"node 1, thread \d+ has computed for 2 s")

    def test_a_crash_names_the_node(self):
        said = self.run_it("crash", status=134)
        self.assertRegex("\n".join(said), r"node 1, thread \d+: signal 6")

    def test_a_thread_local_end_of_a_request_is_refused(self):
        said = self.run_it("local_end", status=64)
        self.assertIn("gives a thread_local variable", "\n".join(said))

    def test_examples_verify_on_a_bad_wire(self):
        for example in EXAMPLES:
            for nodes in (1, 2, 4):
                for launch in ([], STORM):
                    with self.subTest(example=example[0], nodes=nodes, launch=launch):
                        said = self.run_it(*example[1:], nodes=nodes, launch=launch,
                                           program=str(OPTIONS.examples / example[0]))
                        self.assertIn("VERIFICATION SUCCESSFUL", "\n".join(said))

    def test_other_programs_are_refused(self):
        said = self.run_it(program="/bin/true", status=78)
        self.assertIn("/bin/true is not linked with libhiroba_net.so", said[0])
        for program in ("gas_table", "acp_ring"):
            said = self.run_it(program=str(OPTIONS.examples / program), status=78)
            self.assertIn("is not linked with libhiroba_net.so", said[0])

    def test_wrong_words_are_refused(self):
        for words, wanted in ((["-n", "0"], "--nodes 0: a number from 1 to 1024"),
                              (["-n", "2", "--loss", "95"], "--loss 95: a number from 0 to 90"),
                              (["-n", "2", "--seed", "x"], "--seed x: a number from 0"),
                              ([], "--nodes is required")):
            done = subprocess.run([OPTIONS.hiroba, "sim", *words, OPTIONS.program, "order"],
                                  text=True, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 64)
            self.assertIn(wanted, done.stderr)

    def test_without_the_command_a_line_names_it(self):
        simulator = Path(OPTIONS.hiroba).parent.parent / "lib/libhiroba_net_sim.so"
        done = subprocess.run([OPTIONS.program, "order"], text=True, stderr=subprocess.PIPE,
                              env={"LD_PRELOAD": str(simulator)})
        self.assertEqual(done.returncode, 64)
        self.assertIn("start the program with `hiroba sim`", done.stderr)


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--examples", required=True, type=Path)
    parser.add_argument("names", nargs="*")
    OPTIONS = parser.parse_args()
    unittest.main(argv=[sys.argv[0], *OPTIONS.names], verbosity=2)


if __name__ == "__main__":
    main()
