#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes one source file of the engine with one bug planted in it.

The seven bugs are those that a checker of the protocol must find (docs/testing.md). Each replaces
text that must stand exactly once in the file: where the source has changed, this fails, and the
bug must be planted anew. Usage: plant.py <root of the tree> <bug> <output>; plant.py --list
"""

import sys
from pathlib import Path

ENGINE = "src/dsm/engine/"

# bug: (file, the scenario of sim_explore_all that finds it soonest, [(right, wrong), ...])
BUGS = {
    # A notice is used although a newer write may have been dropped into min_wts.
    "notice_older_than_min_wts": (
        ENGINE + "fault_path.cpp",
        "three_nodes_one_notice",
        [
            ("if (rts < min_wts() || wts <= copies_.own_wts(block))",
             "if (wts <= copies_.own_wts(block))"),
            ("    } while (entries_[block].rts < min_wts());",
             "        if (fetched != Fetched::not_possible) break;\n"
             "    } while (entries_[block].rts < min_wts());"),
        ],
    ),
    # A chase puts itself into a word it only passes: the successor named there is forgotten.
    "busy_link_shortened": (
        ENGINE + "block_lock.cpp",
        "three_nodes",
        [
            ("            at = next.next;\n",
             "            if (seen.kind(at, first) == LinkWord::Kind::locked_with_successor) {\n"
             "                records_.compare_swap(word(at, block, link_at), seen.raw(),\n"
             "                                      LinkWord::locked_with_successor(self_).raw());\n"
             "            }\n"
             "            at = next.next;\n"),
        ],
    ),
    # A pinned block that becomes stale keeps its old bytes.
    "pinned_block_not_rebased": (
        ENGINE + "node_acquire.cpp",
        "stack",
        [
            ("    if (has(next.work, BlockWork::rebase)) {\n"
             "        bring_current(block, BlockWork::rebase);\n",
             "    if (has(next.work, BlockWork::rebase)) {\n"),
        ],
    ),
    # Unmerged bytes that write tracking does not announce are not remembered.
    "unmerged_flag_lost": (
        ENGINE + "fault_path.cpp",
        "unmerged",
        [("    if (entry.unmerged) return;\n", "    static_cast<void>(block);\n    if (!entry.unmerged) return;\n")],
    ),
    # A releaser takes another thread's running release for its own.
    "release_of_another_thread": (
        ENGINE + "node_release.cpp",
        "two_threads",
        [
            ("    const std::scoped_lock role{release_};\n"
             "    count(&PlaceCounters::releases);\n",
             "    if (!release_.try_lock()) {\n"
             "        const std::scoped_lock until_it_ends{release_};\n"
             "        return;\n"
             "    }\n"
             "    const std::scoped_lock role{std::adopt_lock, release_};\n"
             "    count(&PlaceCounters::releases);\n"),
        ],
    ),
    # A fetch during which min_wts rose is taken for current.
    "fetch_overtaken_by_acquire": (
        ENGINE + "fault_path.cpp",
        "fetch_and_acquire",
        [("    } while (entries_[block].rts < min_wts());", "    } while (false);")],
    ),
    # Nobody is told of an atomic.
    "atomic_without_notice": (
        ENGINE + "node_atomic.cpp",
        "atomics_and_meeting",
        [("    add_own_notice(block, wts, rts);\n", "")],
    ),
}


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(f"{bug} {file} {found_by}" for bug, (file, found_by, _) in BUGS.items()))
        return 0
    root, bug, output = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    file, _, changes = BUGS[bug]
    text = (root / file).read_text()
    for right, wrong in changes:
        if text.count(right) != 1:
            print(f"{file} has {text.count(right)} times:\n{right}", file=sys.stderr)
            return 1
        text = text.replace(right, wrong)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
