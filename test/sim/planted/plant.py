#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes one source file with one bug planted in it.

Those of LITMUS each take away what one litmus test rests on. The others are of the memory's
protocol, of races that are not told, of freed memory, of the relocatable space, of the order of
ACP's accesses and of cancelled regions (docs/testing.md). Each replaces text that must stand exactly
once in the file: where the source has changed, this fails, and the bug must be planted anew.
Usage: plant.py <root of the tree> <bug> <output>
       plant.py --list <folder>    lines of: bug, file, perhaps a scenario of sim_explore_all
       plant.py --litmus           lines of: bug;file;nodes;pattern
"""

import sys
from pathlib import Path

from acp_bugs import ACP
from exclusive_bugs import EXCLUSIVE
from openmp_bugs import OPENMP
from twin_bugs import TWINS

ENGINE = "src/dsm/engine/"
SPACE = "src/gas/relocatable/"

# bug: (file, [(right, wrong), ...])
BUGS = {
    # A notice is used although a newer write may have been dropped into min_wts.
    "notice_older_than_min_wts": (
        ENGINE + "fault_path.cpp",
        [
            ("if (rts < min_wts() || wts <= copies_.own_wts(block))",
             "if (wts <= copies_.own_wts(block))"),
            ("        if (!fetch_by_notice(block, how, missing)) missing = fetch_by_home(block, how);\n",
             "        const bool by_notice = fetch_by_notice(block, how, missing);\n"
             "        if (!by_notice) missing = fetch_by_home(block, how);\n"),
            ("    } while (!is_current(block));",
             "        if (by_notice) break;\n"
             "    } while (!is_current(block));"),
        ],
    ),
    # A discarded block is fetched ahead, for no thread, from a node that has not discarded it yet.
    "discarded_block_prefetched": (
        ENGINE + "node.cpp",
        [("if (may_come_unasked(entry.state) &&", "if (!readable(entry.state) &&")],
    ),
    # A chase puts itself into a word it only passes: the successor named there is forgotten.
    "busy_link_shortened": (
        "src/dsm/block/block_lock.cpp",
        [
            ("        chased.at = next.next;\n",
             "        if (seen.kind(chased.at, initial_home(chased.block)) ==\n"
             "            LinkWord::Kind::locked_with_successor) {\n"
             "            records_.compare_swap(word(chased.at, chased.block, link_at), seen.raw(),\n"
             "                                  LinkWord::locked_with_successor(self_).raw());\n"
             "        }\n"
             "        chased.at = next.next;\n"),
        ],
    ),
    # What an atomic has changed is not noted for a thread that writes it later, without having known.
    "atomics_not_noted": (
        ENGINE + "node_atomic.cpp",
        [("    if (races_.looks() && options_.atomics", "    if (bytes == 0 && options_.atomics")],
    ),
    # A node does not hand on that others' bytes need a release of its own.
    "own_release_not_needed": (
        "src/dsm/news/known_news.cpp",
        [("    if ((!own && clock.told < learned.told) || clock.needed < learned.needed) {\n",
          "    if (!own && (clock.told < learned.told || clock.needed < learned.needed)) {\n")],
    ),
    # A lock from behind a meeting tells nothing of it to a node that is still there.
    "left_out_at_meeting": (
        "src/dsm/news/known_news.cpp", [("            last.left_out = newest_wts_;\n", "")]),
    # What a meeting told is not told again to who is still there.
    "not_told_again": (
        "src/dsm/news/known_news.cpp",
        [("    for (const Notice& notice : again) tell(notice);\n",
          "    for (const Notice& notice : again.first(0)) tell(notice);\n")]),
    # What a meeting told counts as known to all before all are seen to be past it.
    "not_told_again_too_early": (
        "src/dsm/news/known_news.cpp", [("    if (sequence < last_meeting_.up_to) return;\n", "")]),
    # A node that gives a lock back with nothing published wipes out which nodes have read the version.
    "trace_of_readers_lost": (
        "src/dsm/block/block_lock.cpp",
        [("    const bool read = token.read || (token.home != self_ && !token.sole);\n",
          "    const bool read = token.home != self_ && !token.sole;\n"),
         ("    open(block, token, LeaseWord::closed(token.rts, token.read));",
          "    open(block, token, LeaseWord::closed(token.rts));")],
    ),
    # A pinned block that becomes stale keeps its old bytes.
    "pinned_block_not_rebased": (
        ENGINE + "node_acquire.cpp",
        [
            ("    if (joins()) rebase_together();\n", ""),
            ("            missing = bring_current(block, clean ? BlockWork::fetch : BlockWork::rebase);\n",
             "            static_cast<void>(clean);\n"),
        ],
    ),
    # What an acquire leaves accessible is not brought up to date.
    "followed_block_not_rebased": (
        ENGINE + "node_acquire.cpp",
        [("        count(&PlaceCounters::followed);\n        return put_off(block);\n",
          "        count(&PlaceCounters::followed);\n        return entry.latch.unlock();\n")],
    ),
    # Unmerged bytes that write tracking does not announce are not remembered.
    "unmerged_flag_lost": (
        "src/dsm/block/unmerged_blocks.cpp",
        [("    if (entry.unmerged) return;\n", "    static_cast<void>(block);\n    if (!entry.unmerged) return;\n")],
    ),
    # A releaser takes another thread's running release for its own.
    "release_of_another_thread": (
        ENGINE + "node_release.cpp",
        [
            ("    const std::scoped_lock role{release_};\n"
             "    note_release();\n",
             "    if (!release_.try_lock()) {\n"
             "        const std::scoped_lock until_it_ends{release_};\n"
             "        return;\n"
             "    }\n"
             "    const std::scoped_lock role{std::adopt_lock, release_};\n"
             "    note_release();\n"),
        ],
    ),
    # A release that finds nothing does not wait for an acquire that has just found something.
    "release_before_acquire_ends": (
        ENGINE + "node_release.cpp",
        [("    if (engine_->has_written() || release_.numbers().any_taken()) return false;\n    acquire_.await_open();\n",
          "    if (engine_->has_written() || release_.numbers().any_taken()) return false;\n")],
    ),
    # A fetch during which min_wts rose is taken for current.
    "fetch_overtaken_by_acquire": (
        ENGINE + "fault_path.cpp",
        [("    } while (!is_current(block));", "    } while (false);")],
    ),
    # A node is not told that the lock of a block, and with it its home, has left it.
    "home_not_marked": (
        "src/dsm/block/block_lock.cpp",
        [("        records_.get(word(at, block, token_at), words);\n        moved_.mark(at, block);\n",
          "        records_.get(word(at, block, token_at), words);\n")],
    ),
    # Nor is a node that hands it on itself.
    "home_handed_on_unmarked": (
        "src/dsm/block/block_lock.cpp",
        [("    moved_.mark(self_, block);\n    grant(", "    grant(")],
    ),
    # Readers go on extending the lease of a copy whose home has moved.
    "lease_left_open": (
        "src/dsm/block/block_lock.cpp",
        [("        records_.fetch_or(word(at, block, lease_at), LeaseWord::closing_bit);\n", "")],
    ),
    # Each look of a release merges an unread stack again, until the last has no look behind it.
    "looks_for_nothing": (
        ENGINE + "node_release.cpp",
        [("        drop_unchanged_work(Look::again);\n", "        drop_unchanged_work(Look::first);\n"),
         ("    constexpr unsigned looks_max = 64;\n", "    constexpr unsigned looks_max = 8;\n")],
    ),
    # Who reads under a block's lock has no lease when it opens it.
    "opened_without_lease": (
        ENGINE + "fault_path.cpp",
        [("    token.rts = read_until(token.wts, token.rts, min_wts(), options_.lease);\n"
          "    set_lease(block, token.rts);  // in the queue before the lock is opened (invariant 6)\n",
          "")],
    ),
    # What was read at a home is taken for the newest version without asking afterwards.
    "read_without_extending": (
        ENGINE + "fault_path.cpp",
        [("        if (!lock_.extend(block, *home, until)) continue;\n",
          "        lock_.extend(block, *home, until);\n")],
    ),
    # Of an extent that was written only the first block becomes stale.
    "extent_cut_short": (
        ENGINE + "node_acquire.cpp",
        [("at < notice.count; ++at)", "at < std::min(1u, notice.count); ++at)")],
    ),
    # Blocks in a row are one notice although they were merged at different times.
    "extent_of_two_times": (
        "src/dsm/news/release_under_way.cpp",
        [("made_[made_count_ - 1].goes_on_with(next)",
          "made_[made_count_ - 1].block + made_[made_count_ - 1].count == next.block")],
    ),
    # A mark is not looked at where no min_wts has risen: a home's copy may be older than all leases.
    "old_mark_overlooked": (
        ENGINE + "node.cpp",
        [("acquire_.has_expired(min_wts) && !moved_.any()) {\n",
          "acquire_.has_expired(min_wts)) {\n")],
    ),
    # An atomic shows what it wrote, and owes nothing of what came before it.
    "atomic_without_what_came_before": (
        "src/dsm/news/own_releases.cpp",
        [("    const ReleaseNumber owed = begun_.load(std::memory_order_seq_cst) + 1;\n",
          "    const ReleaseNumber owed = completed_.load(std::memory_order_seq_cst);\n"),
         ("        if (begun_.load(std::memory_order_seq_cst) < owed) return", "        return")],
    ),
    # A fetch shows what it brought, whatever came before.
    "fetch_without_its_news": (
        ENGINE + "fault_path.cpp", [("    return may ? Stamp{} : got.stamp;\n", "    return {};\n")],
    ),
    # A release counts as acquired before all that it has made stale is inaccessible.
    "stale_data_beside_the_flag": (
        ENGINE + "node_acquire.cpp",
        [("void Node::apply_taken() noexcept {\n",
          "void Node::apply_taken() noexcept {\n    acquire_.count_as_acquired();\n")],
    ),
    # A release that other threads' writes have overtaken ends nevertheless.
    "release_that_looks_once": (
        ENGINE + "node_release.cpp",
        [("    constexpr unsigned looks_max = 64;\n", "    constexpr unsigned looks_max = 1;\n")],
    ),
    # Whose bytes lie elsewhere is said to be here, after a look whether anybody has read them.
    "looked_at_as_home": (
        ENGINE + "node_exclusive.cpp",
        [("    at_home ? lock_.unlock(block, token) : lock_.give_back(block, token);\n",
          "    lock_.unlock(block, token);\n"),
         ("!lock_.is_here(block) || ", "")],
    ),
    # Bytes without a lease that were never shown outlive the notice of their version.
    "brought_bytes_outlive_the_notice": (
        ENGINE + "fault_path.cpp",
        [("    const bool has_lease = entry.rts >= copies_.own_wts(block);\n"
          "    if (entry.brought && has_lease && ", "    if (entry.brought && ")],
    ),
    # Two followed blocks are brought up to date in place while threads of the node read both.
    "followed_beside_running_threads": (
        ENGINE + "node_acquire.cpp",
        [("stopped && options_.follow, kept)", "options_.follow, kept)")],
    ),
    # Of blocks that are fetched together, those whose lease was refused are shown all the same.
    "joint_lease_taken_for_granted": (
        ENGINE + "node_together.cpp",
        [("    if (!extension || !BlockLock::is_extended(*extension)) return false;\n",
          "    if (!extension) return false;\n")],
    ),
    # Of blocks that are fetched together, the bytes are read before it is seen where the home is.
    "joint_bytes_before_the_home": (
        ENGINE + "node_together.cpp",
        [("std::array{look, copy[0], copy[1], copy[2]}", "std::array{copy[0], copy[1], copy[2], look}")],
    ),
    # Of blocks that are fetched together, some are shown that must be acquired first.
    "joint_bytes_shown_early": (
        ENGINE + "node_together.cpp",
        [("    return missing.is_none() && node.is_current(block);\n", "    return node.is_current(block);\n"),
         ("    if (way == Way::over) return missing.is_none() && ", "    if (way == Way::over) return ")],
    ),
    # Of locks that are asked for together, those that others hold are taken for this node's.
    "joint_lock_taken_for_granted": (
        "src/dsm/block/block_lock_together.cpp",
        [("        if (goes_on(one, LinkWord::from_raw(list[i].found))) continue;\n", "")],
    ),
    # A node that loses several locks at once is not told.
    "joint_homes_not_marked": (
        "src/dsm/block/block_lock_together.cpp",
        [("        for (Chased* const one : asked) list.add_bits(moved_.accesses(one->block)[level], first);\n",
          "        static_cast<void>(first);\n")],
    ),
    # Readers go on extending the lease of copies whose locks were taken together.
    "joint_leases_left_open": (
        "src/dsm/block/block_lock_together.cpp",
        [("                                  LeaseWord::closing_bit));\n",
          "                                  std::uint64_t{0}));\n")],
    ),
    # A release waits for a lock while it holds others.
    "joint_locks_held_while_waiting": (
        ENGINE + "node_merges.cpp",
        [("    joint.merge_what_was_got();\n",
          "    for (auto& one : std::span{joint.chased}.first(joint.chased_count))\n"
          "        if (!one.token) one.token = lock_.finish(one);\n"
          "    joint.merge_what_was_got();\n")],
    ),
    # Two nodes wait for the same locks in different orders.
    "joint_locks_in_any_order": (
        ENGINE + "node_merges.cpp",
        [("return blocks[a] < blocks[b]; });",
          "return (blocks[a] < blocks[b]) == (node.self_.value % 2 == 0); });")],
    ),
    # A fault maps its node's own version, whatever of it is held back.
    "held_back_mapped": (
        ENGINE + "node_debts.cpp",
        [("    if (is_own && entries_[block].held_back) return false;\n", "    static_cast<void>(is_own);\n")],
    ),
    # A block that was fetched anew is still compared with what it held when its bytes were held back.
    "held_back_after_a_fetch": (
        ENGINE + "fault_path.cpp",
        [("    entries_[block].held_back = false;\n    copies_.publish(block, bytes, got);\n",
          "    copies_.publish(block, bytes, got);\n")],
    ),
    # An atomic changes a copy, and its record does not tell in which line.
    "line_of_atomic_untold": (
        "src/dsm/block/public_copies.cpp",
        [("            lines |= Lines{1} << line;\n", "            lines &= ~(Lines{1} << line);\n")],
    ),
    # What a merge has met at the home is taken for what this node had before.
    "met_version_without_own_changes": (
        ENGINE + "node_release.cpp",
        [("met = {read.wts, outcome.changed_lines};", "met = {read.wts, 0};")],
    ),
    # What is written between the last look at a block and the watch of its page is not looked for.
    "watched_without_a_look": (
        ENGINE + "node_release.cpp",
        [("    engine_->watch(program_range(block));\n    return has_changed(block);\n",
          "    engine_->watch(program_range(block));\n    return false;\n")],
    ),
    # A buffer is watched that a system call uses yet: the kernel may not write to it.
    "buffer_watched_in_use": (
        ENGINE + "node_release.cpp",
        [("    if (!readable(entry.state) || must_stay(block)) return false;\n",
          "    if (!readable(entry.state)) return false;\n")],
    ),
    # A notice without a lease is forgotten before its bytes are here: an older one takes its place.
    "notice_without_lease_forgotten": (
        ENGINE + "fault_path.cpp",
        [("    if (rts < wts && wts > copies_.own_wts(block)) return false;\n    entry.notice_wts = {};\n",
          "    entry.notice_wts = {};\n    if (rts < wts) return false;\n")],
    ),
    # What both sides have written is put together without a comparison.
    "rebase_without_comparison": (
        ENGINE + "fault_path.cpp",
        [("        races_.look_for_races(block, {seen.get(), twin, bytes}, from);\n",
          "        static_cast<void>(from);\n")],
    ),
    # What a node writes on top of bytes that came too early is not looked at.
    "early_bytes_forgotten": (
        ENGINE + "fault_path.cpp",
        [("    races_.note_brought(block, got.change);\n", "")],
    ),
    # An atomic tells what its node has done, and not what that node has followed.
    "atomic_without_what_it_followed": (
        "src/dsm/races/race_search.cpp",
        [("    look_at_early_blocks();\n    around_.news.know_what_was_told();\n    // Relaxed",
          "    look_at_early_blocks();\n    // Relaxed")],
    ),
    # That the program flushes is known only behind the bytes that its first flush has ordered.
    "flushes_noted_late": (
        ENGINE + "node_debts.cpp",
        [("        note_flushes(view(stamp.writer(), news));\n", "")],
    ),
    # A node's first flush takes for unordered what a flag has ordered before it.
    "first_flush_knows_nothing": (
        ENGINE + "node_flush.cpp",
        [("    news_.note_own_flush();\n", "    news_.note_program_flushes();\n")],
    ),
    # Bytes of a release are shown before it is known that a flag among them orders what came before.
    "epochs_known_late": (
        ENGINE + "node_acquire.cpp",
        [("    if (news_.program_flushes()) races_.acquire_known();\n", ""),
         ("        if (missing.is_none()) return;\n", "        if (missing.is_none()) return yield();\n")],
    ),
    # An atomic overtakes the write of another thread of its node, whose page is under way.
    "atomic_before_own_write": (
        ENGINE + "node_atomic.cpp",
        [("        let_write_faults_end(block, *offset);\n", ""),
         ("tries < tries_giving_way", "false && tries < tries_giving_way")],
    ),
    # A node that lets another go first waits until it is told, and the other does not tell it.
    "turn_without_end": (
        ENGINE + "node_turns.cpp",
        [("        if (wait.is_over()) {\n            debts_", "        if (wait.is_over() && block > ~0u - 1) {\n            debts_"),
         ("    if (asked != 0) tell_turn", "    if (asked == ~0u) tell_turn")],
    ),
    # A load's fault waits until another node writes, which may be never.
    "waiting_load_without_end": (
        ENGINE + "node_spins.cpp",
        [("!came && !wait.is_over();", "!came;")],
    ),
    # A block that is closed is taken for merged.
    "closed_as_equal": (
        ENGINE + "node_spins.cpp",
        [("    const bool changed = has_changed(block);\n", "    const bool changed = false;\n")],
    ),
    # A block is closed while a release looks at what was written: neither of two lists has it.
    "closed_beside_collect": (
        ENGINE + "node_spins.cpp",
        [("    if (!role) return;\n", "")],
    ),
    # No node is told of an atomic.
    "atomic_without_notice": (
        ENGINE + "node_atomic.cpp",
        [("    add_own_notice(block, wts, tried == Tried::no ? rts : Timestamp{});\n", "")],
    ),
    # A sharer says that its writes have ended while they are under way.
    "writes_not_drained": (
        SPACE + "metadata_cache.cpp",
        [("    if (now.state != PageState::stopped) return true;\n", "    if (now.version < ~0u) return true;\n")],
    ),
    # Two waves, as in the paper: a sharer that has the new metadata writes, another still reads
    # the old copy.
    "resumed_with_the_move": (
        SPACE + "metadata_cache.cpp",
        [("next.lost ? PageState::lost : PageState::moved;", "next.lost ? PageState::lost : PageState::live;")],
    ),
    # The directory node does not note who asked.
    "sharer_forgotten": (
        SPACE + "directory_station.cpp",
        [("        if (word.live) add_sharer(page, waiter.from.value);\n", "")],
    ),
    # Who joins a move reads the old copy, and is not told of the new one.
    "joined_and_not_told": (
        SPACE + "relocator.cpp",
        [("            granted.sharers.add(rank);\n", "")],
    ),
    # Who joins a move is entered among the sharers at its end, behind the next mover's claim.
    "joined_without_entry": (
        SPACE + "directory_station.cpp",
        [("        add_sharer(page, from.value);\n", "")],
    ),
    # A node that asks takes an answer that a mover's message has overtaken.
    "late_answer_taken": (
        SPACE + "metadata_cache.cpp",
        [("    if (now.state != PageState::asking || now.token != token) return;\n",
          "    if (now.token != token) return;\n")],
    ),
    # A one-sided asker reads the word before it enters itself among the sharers.
    "asked_before_entered": (
        SPACE + "one_sided_directory.cpp",
        [("    if (!enter(words, self)) return cache_.abandon(asked.page);\n", ""),
         ("        if (!word.moving) return cache_.told(asked.page, asked.token, word);\n",
          "        if (!word.moving) {\n"
          "            enter(words, self);\n"
          "            return cache_.told(asked.page, asked.token, word);\n"
          "        }\n")],
    ),
}

KEEPS_LAST = ("if (auto* const count = reinterpret_cast<std::uint32_t*>({0}.data() + 8); *count > 1) {{\n"
              "    const std::size_t at = 32 + 32 * count[1];\n"
              "    const std::size_t gone = (*count - 1) * 32;\n"
              "    std::memmove({0}.data() + at, {0}.data() + at + gone, bytes - at - gone);\n"
              "    *count = 1;\n"
              "    bytes -= gone;\n"
              "}}\n")

# What each litmus test rests on, taken away: bug: (file, [(right, wrong), ...], nodes, pattern).
LITMUS = {
    # A lock hands on the last of its notices only.
    "lock_forgets_news": (
        "src/dsm/sync/lock_table.cpp",
        [("    cells_.shared(cell).news_bytes.store(memory_.news_for_anyone(cells_.news(cell)));\n",
          "    const MutableBytes own = cells_.news(cell);\n"
          "    std::size_t bytes = memory_.news_for_anyone(own);\n" + KEEPS_LAST.format("own")
          + "    cells_.shared(cell).news_bytes.store(bytes);\n")],
        2, "message passing by lock"),
    # A barrier does not release.
    "barrier_without_release": (
        "src/dsm/sync/news_barrier.cpp",
        [("    memory_.release(std::exchange(asks_early_, false) ? others() : Others::running);\n", "")],
        2, "message passing by barrier"),
    # An atomic works on the copy that is here.
    "atomic_on_old_copy": (
        ENGINE + "node_atomic.cpp",
        [("    if (moves && !waits) {\n        missing",
          "    if (moves && !waits && block > ~0u - 1) {\n        missing")],
        2, "store buffering by atomics"),
    # An unlock does not release.
    "unlock_without_release": (
        "src/dsm/sync/lock_table.cpp",
        [("    memory_.release(Others::running);\n", "")],
        2, "store buffering by locks"),
    # Every second lock is taken without an acquire.
    "lock_without_acquire": (
        "src/dsm/sync/lock_table.cpp",
        [("    memory_.acquire(Others::running);\n",
          "    static thread_local unsigned locks = 0;\n"
          "    if (++locks % 2 == 1) memory_.acquire(Others::running);\n")],
        4, "independent reads by locks"),
    # A node hands on what it wrote, not what it has learned.
    "news_not_joined": (
        "src/dsm/news/known_news.cpp",
        [("    for (const Notice& notice : taken.first(news.notices)) add(notice);\n",
          "")],
        3, "transitivity over a third node"),
    # A flush tells the last of its notices only.
    "flush_forgets_news": (
        "src/dsm/news/flushes.cpp",
        [("    const std::size_t bytes = news_.encode_for_anyone(object_.own_news());\n",
          "    const MutableBytes own = object_.own_news();\n"
          "    std::size_t bytes = news_.encode_for_anyone(own);\n" + KEEPS_LAST.format("own"))],
        2, "publication, flush behind"),
    # A fault that finds a block newer than was told does not ask what else was flushed.
    "fault_without_catching_up": (
        ENGINE + "fault_path.cpp", [("    return may ? Stamp{} : got.stamp;\n", "    return {};\n")],
        2, "publication, none behind"),
}
# Of the program's mutexes, semaphores and read-write locks.
OBJECTS = {
    # A node owes a release although it has not seen all news of the bucket, which its payment replaces.
    "owed_over_unread_news": (
        "src/dsm/sync/sync_cells.cpp",
        [("    if (owes == 0 && get_of_bucket(version) != cells_.seen(bucket_).load(std::memory_order_relaxed))\n"
          "        return false;\n", "")],
    ),
    # A thread of another node that goes on at once is told of the debt too late.
    "owed_behind_the_grant": (
        "src/dsm/sync/sync_cells.cpp",
        [("    if (has_waiters()) cells_.segment_.store(cells_.at(bucket_, owing), self.value + 1);\n", "")],
    ),
    # A semaphore is posted and the release forgotten.
    "post_owes_nothing": (
        "src/dsm/sync/sync_events.cpp",
        [("    if (!semaphore.owe_release()) return SyncOutcome::busy;\n", "")],
    ),
}
BUGS |= ACP | EXCLUSIVE | OPENMP | TWINS | OBJECTS

# The scenario of sim_explore_all that finds it soonest.
EXPLORED = {
    "left_out_at_meeting": "lock_from_behind_meeting",
    "not_told_again": "lock_with_what_the_meeting_told",
    "carried_for_any_notice": "merges_carried",
    "held_back_mapped": "held_back_and_fault",
    "atomics_not_noted": "write_beside_atomic",
    "notice_older_than_min_wts": "three_nodes_one_notice",
    "release_before_acquire_ends": "write_and_acquire",
    "busy_link_shortened": "three_nodes",
    "pinned_block_not_rebased": "stack",
    "unmerged_flag_lost": "unmerged",
    "release_of_another_thread": "two_threads",
    "fetch_overtaken_by_acquire": "fetch_and_acquire",
    "atomic_without_notice": "atomics_and_meeting",
    "lease_left_open": "extend_and_take",
    "opened_without_lease": "lock_goes_round",
    "old_mark_overlooked": "old_mark",
    "home_not_marked": "old_mark",
    "atomic_without_what_came_before": "flag_by_atomic",
    "fetch_without_its_news": "flag_by_atomic",
    "stale_data_beside_the_flag": "flag_and_acquire",
    "own_release_not_needed": "own_release_needed",
    "release_that_looks_once": "flag_and_release",
    "rebase_without_comparison": "race_and_rebase",
    "early_bytes_forgotten": "race",
    "atomic_without_what_it_followed": "writes_behind_atomics",
    "order_of_unchanged_bytes_lost": "word_set_back",
    "atomic_before_own_write": "atomic_behind_own_write",
    "flush_known_to_one": "flushes_of_three_nodes",
    "flushes_noted_late": "flag_by_flush_and_word",
    "epochs_known_late": "flag_by_flush_and_word",
    "first_flush_knows_nothing": "flag_by_first_flush",
    "turn_without_end": "atomic_turns",
    "waiting_load_without_end": "waiting_load",
    "closed_as_equal": "closed_beside_release",
    "closed_beside_collect": "closed_beside_release",
    "given_up_without_debt": "exclusive",
    "given_up_untracked": "exclusive_and_lock",
    "stack_given_up_as_any": "exclusive_stack",
    "exclusive_though_read": "exclusive_and_reader",
    "home_moved_without_trace": "exclusive_and_lock_back",
    "atomic_tried_with_lease": "exclusive_by_atomics",
    "held_passed_by": "held_until_meeting",
    "held_without_debt": "held_and_wanted",
    "passing_not_awaited": "held_by_threads",
    "handed_over_mapped": "handed_over",
    "given_back_past_atomic": "handed_over_and_atomic",
    "given_back_past_release": "handed_over_and_released",
    "given_back_past_its_release": "taken_beside_release",
    "given_back_past_empty_release": "handed_over_and_released",
    "sole_though_read": "handed_over_and_reader",
    "taken_without_its_news": "handed_over_and_flag",
    "untouched_though_read": "untouched",
    "line_of_atomic_untold": "atomics_and_meeting",
    "met_version_without_own_changes": "race_and_rebase",
}


def main():
    if sys.argv[1] == "--litmus":
        for bug, (file, _, nodes, pattern) in LITMUS.items():
            print(bug, file, nodes, pattern, sep=";")
        return 0
    if sys.argv[1] == "--list":
        folder = Path(sys.argv[2])
        for bug, (file, _) in BUGS.items():
            if Path(file).parent == folder:
                print(bug, file, EXPLORED.get(bug, ""))
        return 0
    root, bug, output = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    file, changes = (BUGS.get(bug) or LITMUS[bug])[:2]
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
