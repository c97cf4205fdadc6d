#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bugs of twins that are made at first writes, for plant.py: bug: (file, [(right, wrong), ...])."""

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
}
