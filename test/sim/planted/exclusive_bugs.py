#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bugs of blocks that are one node's own, for plant.py: bug: (file, [(right, wrong), ...])."""

ENGINE = "src/dsm/engine/"

EXCLUSIVE = {
    # A block becomes exclusive while others may have a copy by an older notice.
    "exclusive_before_all_know": (
        ENGINE + "node_exclusive.cpp",
        [("           news_.all_know(trial.by);\n",
          "           trial.by <= release_.number();\n")],
    ),
    # What was told is taken for what has been acquired.
    "known_before_acquired": (
        "src/dsm/news/known_news.cpp",
        [("    if (acquired >= asking_.last.release)\n        everyone_knows(", "    everyone_knows(")],
    ),
    # A block becomes exclusive though another node has read it from the home.
    "exclusive_though_read": (
        ENGINE + "node_exclusive.cpp",
        [("           !token.read &&\n", "")],
    ),
    # A block becomes exclusive though another node has read it with its lock, and was its home.
    "home_moved_without_trace": (
        "src/dsm/block/block_lock.cpp",
        [("token.read || (token.home != self_ && !token.sole);", "token.read;")],
    ),
    # A block that atomics write becomes exclusive before any node was told of the first of them.
    "atomic_known_too_early": (
        ENGINE + "node_atomic.cpp",
        [("entry.trial.by = release_.numbers().begun() + 1;", "entry.trial.by = 0;")],
    ),
    # Others read what an atomic has written by its notice, and leave no trace.
    "atomic_tried_with_lease": (
        ENGINE + "node_atomic.cpp",
        [("tried == Tried::no ? rts : Timestamp{}", "rts")],
    ),
    # A release passes by what is held.
    "held_passed_by": (
        ENGINE + "node_release.cpp",
        [("        merge_held(block);\n        return false;\n", "        return false;\n")],
    ),
    # What was written while a block was held is given up as if releases had told of it.
    "held_without_debt": (
        ENGINE + "node_held.cpp",
        [("{wts, owe_release(), races_.this_change()}",
          "{wts, {self_, release_.numbers().begun()}, races_.this_change()}")],
    ),
    # What one other node has acquired of a flush, all are taken to know.
    "flush_known_to_one": (
        "src/dsm/news/news_board.cpp",
        [("    ReleaseNumber least = ~ReleaseNumber{0};\n", "    ReleaseNumber least = 0;\n"),
         ("        least = std::min(least, segment_.load(", "        least = std::max(least, segment_.load(")],
    ),
    # A flush that waits for the others' gives nothing up; nor does the release that waits behind it.
    "flush_serves_nobody": (
        ENGINE + "node_flush.cpp",
        [("    const FlushObject::Content flushed = flushes_.take([this] { serve_wanted(); });\n",
          "    const FlushObject::Content flushed = flushes_.take([] {});\n")],
    ),
    # The initial home reads a block that no node has touched, and leaves no trace.
    "untouched_though_read": (
        ENGINE + "fault_path.cpp",
        [("    if (lock_.is_here(block) && lock_.touch(block)) {", "    if (lock_.is_here(block)) {")],
    ),
    # A block is handed over while the program of the node that had it can reach its copy.
    "handed_over_mapped": (
        ENGINE + "node_exclusive.cpp",
        [("    engine_->unmap(gone.ranges());\n", "")],
    ),
    # The node that has handed a block over reads it again, and says nothing.
    "sole_though_read": (
        "src/dsm/block/block_lock.cpp",
        [("(!lease.is_untouched() && !lease.is_sole())", "!lease.is_untouched()")],
    ),
    # A block that another node has read since it was handed over is taken whole.
    "taken_though_read": (
        ENGINE + "node_exclusive.cpp",
        [(" || !token->sole || token->read", "")],
    ),
    # A block is taken whole without what came before it.
    "taken_without_its_news": (
        ENGINE + "node_exclusive.cpp",
        [("if (const Stamp before = copies_.stamp_of(home->node, block); !may_place(block, before))",
          "if (const Stamp before = copies_.stamp_of(home->node, block); before.is_none() && false)"),
         ("    if (!missing.is_none() || entry.early", "    missing = {};\n    if (entry.early")],
    ),
    # Old news make a block stale that has been taken whole.
    "taken_until_no_time": (
        ENGINE + "node_exclusive.cpp",
        [("    entry.rts = token->rts;  // whatever news tells of is older\n", "")],
    ),
    # What is given up says nothing of what came before it.
    "given_up_without_debt": (
        ENGINE + "node_exclusive.cpp",
        [("{wts, owe_release(), {self_", "{wts, copies_.own_stamp(block), {self_")],
    ),
    # What is written after a block was given up is not noticed.
    "given_up_untracked": (
        ENGINE + "node_exclusive.cpp",
        [("    engine_->track(program_range(block));\n", "")],
    ),
    # Memory that was freed while it was one node's own: what is written there next is not noticed.
    "freed_untracked": (
        ENGINE + "node_discard.cpp",
        [("    engine_->track(program_range(block));\n", "")],
    ),
    # A block is given up while a thread of the node is in the middle of an atomic there.
    "passing_not_awaited": (
        ENGINE + "node_exclusive.cpp",
        [("    entries_.passes().await_none(range);\n", "")],
    ),
    # Its lock stays with the node that freed it.
    "freed_and_kept": (
        ENGINE + "node_discard.cpp",
        [("    lock_.unlock(block, lock_.held_token(block));\n", "")],
    ),
    # A block goes back as it was taken though a release has begun since.
    "given_back_past_release": (
        ENGINE + "node_exclusive.cpp",
        [("trial.as_taken && release_.numbers().is_last(trial.by);", "trial.as_taken;")],
    ),
    # A block goes back as it was taken though an atomic was made there.
    "given_back_past_atomic": (
        ENGINE + "node_atomic.cpp",
        [("    entry.trial.as_taken = false;\n", "")],
    ),
    # A block goes back as it was taken though it was taken in the course of a release.
    "given_back_past_its_release": (
        ENGINE + "node_exclusive.cpp",
        [("    entry.trial.as_taken = release_.numbers().completed() == entry.trial.by;\n", "    entry.trial.as_taken = true;\n")],
    ),
    # An atomic that gives way to a write leaves its node the home of bytes whose time it does not note.
    "taken_home_without_its_time": (
        ENGINE + "node_atomic.cpp",
        [("    entry.rts = token.rts;\n    entry.brought = false;\n    thread_part()", "    entry.brought = false;\n    thread_part()")],
    ),
    # A block goes back as it was taken though a release has begun that had nothing to do.
    "given_back_past_empty_release": (
        ENGINE + "node_release.cpp",
        [("engine_->has_written() || release_.numbers().any_taken()", "engine_->has_written()")],
    ),
    # A stack that was given up may become inaccessible to its own thread.
    "stack_given_up_as_any": (
        ENGINE + "node_exclusive.cpp",
        [("    if (is_pinned(offset_of(block))) entry.state =", "    if (false) entry.state =")],
    ),
    # An atomic was to make a block its node's own when another node asked: no release looks at it.
    "wanted_at_once_forgotten": (
        ENGINE + "node_atomic.cpp",
        [("        put_on_unmerged(block);\n    }\n    if (may_hold(block, token, now)",
          "    }\n    if (may_hold(block, token, now)")],
    ),
    # A block that an atomic without the runtime stack has written is given back as it was taken.
    "own_atomic_leaves_as_taken": (
        ENGINE + "node_own_atomic.cpp",
        [("    entry.trial.as_taken = false;  // as in enter_own()\n", "")],
    ),
}
