#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bugs of OpenMP's part: cancelled regions, and tasks behind barriers (plant.py)."""

OPENMP = {
    # A thread that cancels a region does not wake the threads that sleep at its barriers.
    "cancel_wakes_nobody": (
        "src/omp/runtime_cancel.cpp",
        [("    tasks_.ring();  // Threads of this node that wait at a barrier.\n", "")],
    ),
    # Who waits at a barrier does not look whether the region is cancelled.
    "barrier_not_left": (
        "src/omp/runtime_region.cpp",
        [("[&] { return barrier.phase() != phase || cancelled.region(); }",
          "[&] { return barrier.phase() != phase; }")],
    ),
    # A node takes tasks from behind a barrier at which its threads still help.
    "task_taken_ahead_of_barrier": (
        "src/omp/task/task_exchange.cpp",
        [("mail.header.barriers > barriers_passed);", "mail.header.barriers > barriers_passed + 1);")],
    ),
    # Tasks that wait for the end of a barrier are left there.
    "task_left_behind_barrier": (
        "src/omp/task/task_exchange.cpp",
        [("    if (!early_.mails.empty()) read_early();\n", "    if (early_.mails.empty()) read_early();\n")],
    ),
    # A wish that comes before its receiver has begun the region is dropped.
    "wish_of_next_region_dropped": (
        "src/omp/task/task_exchange.cpp",
        [("    return mail.header.region > region ||", "    return mail.header.region > region + 1 ||")],
    ),
    # Constructs that only some threads came to are left as they are.
    "cancelled_constructs_kept": (
        "src/omp/runtime_cancel.cpp",
        [("    if (!team.cancellation.region()) return;\n", "    if (team.words != nullptr) return;\n")],
    ),
}
