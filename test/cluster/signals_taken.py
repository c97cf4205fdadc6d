# SPDX-License-Identifier: BSD-3-Clause
"""Signals of tests that send some: a shell's background job, nohup and some runners have them ignored, and children inherit that."""
import signal


def take_as_from_a_terminal():
    """SIGHUP, SIGINT and SIGQUIT end this process and those that it starts, whoever started it."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
