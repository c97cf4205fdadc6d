#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bugs of twins that are made at first writes, and of what comes with notices, for plant.py: bug: (file, [(right, wrong), ...])."""

FILE = "src/dsm/engine/node_twins.cpp"

TWINS = {
    # A chunk is opened, and what lies in it is compared with nothing.
    "twin_left_unmade": (
        FILE,
        [("no_twin, false)) copies_.fill(block, private_copy(block));\n", "no_twin, false)) return;\n")],
    ),
    # A node becomes the home of a block, and others read bytes that it never had there.
    "home_without_twin": (
        "src/dsm/engine/fault_path.cpp",
        [("    make_twin(block);  // which others read\n", "")],
    ),
    # The kernel is to write to a buffer in a sealed chunk.
    "buffer_left_sealed": (
        "src/dsm/engine/node.cpp",
        [("        if (write) let_writes(block);\n        until_acquired(block, [&] { return pin_block",
          "        until_acquired(block, [&] { return pin_block")],
    ),
    # What atomics have set and set back tells nothing of what came before them.
    "order_of_unchanged_bytes_lost": (
        "src/dsm/engine/node_release.cpp",
        [("holds = must_hold_back(block, read.stamp);",
          "holds = outcome.foreign ? must_hold_back(block, read.stamp) : entries_[block].held_back;")]),
    # What came along with an older notice is taken for what a newer one tells of.
    "carried_for_any_notice": (
        "src/dsm/block/carried_lines.cpp",
        [("slot.wts != wts.value) return", "slot.wts > wts.value) return")]),
    # What came along with a notice is put onto whatever version is here.
    "carried_onto_any_version": (
        "src/dsm/block/carried_lines.cpp",
        [("    if (std::ranges::find(slot.bases, base) ==", "    if (base == 0 && std::ranges::find(slot.bases, base) ==")]),
    # Of what changed since older versions only the newest is carried.
    "carried_without_older_lines": (
        "src/dsm/block/public_copies.cpp",
        [("        made.lines = since.lines;  // all of the newer bases', too\n",
          "        if (i == 0) made.lines = since.lines;\n")]),
}
