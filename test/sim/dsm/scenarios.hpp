// SPDX-License-Identifier: BSD-3-Clause
// Role: the small programs that sim_explore_all explores, on 2 and 3 nodes with 1 and 2 blocks.
#pragma once

#include "sim/dsm/scenario.hpp"

namespace hiroba::sim_test {

/// From few states to many.
inline constexpr Scenario scenarios[] = {
    // Both write a word between the same synchronizations.
    {"race", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.write(node, 0, 111 + thread);
         world.meet(node);
     },
     Races::some, true},
    {"race_after_meeting", 2, 1, 4, true, hops, Second::none, write_after_meeting, Races::some,
     true},
    // One node publishes in the background, which the other learns in the background.
    {"race_and_flusher", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 1) node.memory().flush_aside();
         world.write(node, 0, 111 + thread);
         if (thread == 0) node.memory().flush_aside();
         world.meet(node);
     },
     Races::some, true},
    // What a node has written goes on top of newer bytes before its release.
    {"race_and_rebase", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.write(node, 0, 111 + thread);
         if (thread == 0) world.lock(node, 0), world.unlock(node, 0);
         if (thread == 1) world.lock(node, 0), world.write(node, 1, 5), world.unlock(node, 0);
     },
     Races::some, true},
    {"locked_writes", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.lock(node, 0);
         world.write(node, 0, 111 + thread);
         world.unlock(node, 0);
         world.meet(node);
         if (thread == 1) world.write(node, 0, 9);
         world.meet(node);
     },
     Races::none, true},
    // A lock comes from behind a meeting to a thread whose node is still there: with a time that
    // covers what the meeting told, or with its notices.
    {"lock_from_behind_meeting", 2, 2, 4, false, hops, Second::none, lock_from_behind_meeting,
     Races::off, true},
    {"lock_with_what_the_meeting_told", 2, 2, 16, false, hops, Second::none,
     lock_from_behind_meeting, Races::off, true},
    // A flag in another block that is only loaded and stored.
    {"plain_flag", 2, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.write(node, 0, 111);
             world.write(node, 2, 1);
             node.memory().flush_aside();
         } else if (world.read(node, 2) == 1 && world.read(node, 0) == 111) {
             world.write(node, 0, 112);
         }
         world.meet(node);
     },
     Races::none, true},
    // A word that two nodes hand on by flushes alone, while another thread of the node that gets it
    // learns what was flushed.
    {"flag_by_flush", 2, 2, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 2) world.write(node, 0, 111), node.memory().flush();
         if (thread == 1) node.memory().flush();
         if (thread == 0 && world.read(node, 0) == 111) world.write(node, 0, 112);
     },
     Races::none, true},
    // The same, while another thread of the node that gets it comes upon a word beside it, and so
    // asks for the release.
    {"flag_by_flush_and_word", 2, 2, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 2) world.write(node, 0, 111), node.memory().flush();
         if (thread == 1) world.read(node, 1);
         if (thread == 0 && world.read(node, 0) == 111) world.write(node, 0, 112);
     },
     Races::none, true},
    // Likewise, and the word was published before the program's first flush: the other node learns
    // that the program flushes by its own first flush alone.
    {"flag_by_first_flush", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.write(node, 0, 111);
             node.memory().flush_aside();
             node.memory().flush();
         } else if (world.read(node, 0) == 111) {
             world.write(node, 0, 112);
             node.memory().flush();
         }
     },
     Races::none, true},
    // Two nodes flush in turns, and a third, which has an old copy of what was written first,
    // flushes for the first time behind them or beside the last of these.
    {"flushes_of_three_nodes", 3, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.await_told(1), world.write(node, 0, 111), node.memory().flush(), world.tell();
             world.await_told(3), world.write(node, 2, 110), node.memory().flush();
             world.write(node, 2, 111), node.memory().flush();
         }
         if (thread == 1) {
             world.await_told(2), world.write(node, 3, 1), node.memory().flush(), world.tell();
         }
         if (thread == 2) {
             world.read(node, 0), world.tell();
             world.await_told(3), node.memory().flush(), world.look(node, 2, 0);
         }
     },
     Races::off, true},
    // An atomic orders the writes.
    {"write_behind_atomic", 2, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.write(node, 0, 111), world.fetch_add(node, 2, 1);
         if (thread == 1 && world.fetch_add(node, 2, 0) == 1) world.write(node, 0, 112);
         world.meet(node);
     },
     Races::none, true},
    // The same, with one of a third node in between, which has written nothing. The atomics come
    // one
    // after the other, so that all orders of the releases that they owe can be gone through.
    {"writes_behind_atomics", 3, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.await_told(thread);
         if (thread == 0) world.write(node, 0, 111), world.fetch_add(node, 2, 1);
         if (thread == 1) world.fetch_add(node, 2, 0);
         if (thread < 2) return world.tell();
         if (world.fetch_add(node, 2, 0) == 1) world.write(node, 0, 112);
         world.lock(node, 0), world.unlock(node, 0);
     },
     Races::none, true},
    // Atomics set a word and set it back, as a lock's. The other node's release merges what it has
    // written beside the word, and finds no byte changed by others; what came before the atomics
    // its own atomic must find all the same.
    {"word_set_back", 2, 1, 4, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.await_told(1);
             world.add(node, 0);
             world.fetch_add(node, 2, 1), world.fetch_add(node, 2, ~std::uint64_t{0});
             world.tell();
         } else {
             world.read(node, 0), world.write(node, 3, 5);
             world.tell(), world.await_told(2);
             world.lock(node, 0), world.unlock(node, 0);
             world.fetch_add(node, 2, 0), world.see(node, 0);
         }
     },
     Races::none, true},
    // An atomic comes behind the write of another thread of its node, whose page comes from the
    // other node first.
    {"atomic_behind_own_write", 2, 2, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.write_and_tell(node, 0, 7);
         if (thread == 1) world.await_told(1), world.add_behind_write(node, 0, 7);
         if (thread == 2) world.fetch_add(node, 1, 1);
     },
     Races::off, true},
    // The write comes at any time: also when the atomic has the block's lock, which it gives back.
    {"atomic_beside_own_write", 2, 2, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.write(node, 0, 7);
         if (thread > 0) world.atomic_add(node, 1);
     },
     Races::none, true},
    // A write and an atomic of two nodes, whichever comes first: what was added is there, or told.
    {"write_beside_atomic", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.write(node, 0, 7);
         if (thread == 1) world.fetch_add(node, 0, 1);
         world.meet(node);
         if (thread == 0) world.see_or_told(node, 0, 8);
     },
     Races::any, true},
    // A node comes back to a block while another, which has to acquire what it did before, wants a
    // turn.
    {"atomic_turns", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.fetch_add(node, 0, 1);
         if (thread == 0) world.fetch_add(node, 0, 1);
     },
     Races::off, true},
    // Node 0 waits for a word by loads, behind an atomic of its own: each closes the word's block,
    // and waits for an atomic of the other node, which comes or does not.
    {"waiting_load", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.be_seen_to_wait(node, thread, 0);
         if (thread == 1) return static_cast<void>(world.fetch_add(node, 0, 1));
         world.fetch_add(node, 0, 1);
         world.await_write(node, 0);
         world.see_at_least(node, 0, 2);
     },
     Races::off, true},
    // A thread that waits closes it with bytes that are not merged, while a release begins that
    // another
    // node has asked for.
    {"closed_beside_release", 2, 2, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.be_seen_to_wait(node, thread, 0);
         if (thread == 0) world.write(node, 1, 7), world.fetch_add(node, 2, 1), world.tell();
         // Its second round publishes nothing before it closes the block.
         if (thread == 1)
             world.await_write(node, 0), world.await_told(3), world.await_write(node, 0);
         if (thread == 2)
             world.await_told(3), world.fetch_add(node, 2, 0), world.see_at_least(node, 1, 7);
     },
     Races::none, true},
    // In any order: for a night, and up to a number of states.
    {"atomics_of_three_nodes", 3, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.write(node, 0, 111), world.fetch_add(node, 2, 1);
         if (thread == 1) world.fetch_add(node, 2, 0);
         if (thread == 2 && world.fetch_add(node, 2, 0) == 1) world.write(node, 0, 112);
         world.meet(node);
     },
     Races::none, true},
    // The second block is a stack of node 1: never inaccessible there.
    {"stack", 2, 1, 4, false, hops, Second::stack,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.locked_add(node, 0, 2);
         world.locked_add(node, 0, 3 - thread);
         world.locked_add(node, 0, 2);
     }},
    // Signatures of one notice: what is dropped into min_wts ends leases.
    {"one_notice", 2, 1, 1, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.locked_add(node, 0, 2 * thread);
         world.locked_add(node, 0, 2 * (1 - thread));
     }},
    // A write outside the critical section stays unmerged while news of the other word come in.
    {"unmerged", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.add(node, thread);
         world.lock(node, 0);
         world.see(node, thread);
         world.unlock(node, 0);
         world.meet(node);
         world.see(node, 1 - thread);
     },
     Races::off, true},
    // A remembered notice grows old: a newer one of its block has been dropped.
    {"three_nodes_one_notice", 3, 1, 1, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.locked_add(node, 0, 0);
         if (thread == 1) world.add_and_drop_notice(node);
         if (thread == 2) world.lock(node, 0), world.unlock(node, 0);
         if (thread == 2) world.lock(node, 0), world.see(node, 0), world.unlock(node, 0);
     },
     Races::off, true},
    {"atomics_and_meeting", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t, ClusterNode& node) {
         world.see(node, 1);
         world.atomic_add(node, 0);
         world.meet(node);
         world.see(node, 0);
     },
     Races::off, true},
    // A region reads its struct first, and one thread writes into it.
    {"fork", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.add(node, 0);
         if (thread == 1) world.see(node, 1);
         world.meet(node);
         world.see(node, 0);
         if (thread == 1) world.add(node, 1);
         world.meet(node);
         world.see(node, 1);
     },
     Races::off, true},
    // The same, and ends with a reduction into it.
    {"fork_and_reduction", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.add(node, 0);
         if (thread == 1) world.see(node, 1);
         world.meet(node);
         world.see(node, 0);
         world.atomic_add(node, 1);
         world.meet(node);
         world.see(node, 1);
     },
     Races::off, true},
    // A reader extends a lease at a home that is moving.
    {"extend_and_take", 3, 1, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 1) world.see(node, 1);
         if (thread == 1) world.lock(node, 0), world.see(node, 0), world.unlock(node, 0);
         if (thread == 2) world.lock(node, 0), world.atomic_add(node, 0), world.unlock(node, 0);
     }},
    // Two nodes read a block, its lock being held, and have learned of later writes than any of it.
    {"lock_goes_round", 3, 1, 1, true, hops, Second::heap_twice,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             for (unsigned round = 0; round < 6; ++round)
                 world.locked_add(node, 0, 2 + round % 2 * 2);
             world.tell();
         }
         world.await_told(thread == 1 ? 1 : 2);
         if (thread == 1) world.lock(node, 0), world.unlock(node, 0), world.tell();
         if (thread == 2) return world.atomic_add(node, 1);
         world.see_with_one_answer(node, 0);
     }},
    // A home moves by a write earlier than what its node has learned of everything else.
    {"old_mark", 2, 1, 1, true, hops, Second::heap_twice,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.see(node, 1), world.add(node, 2), world.add(node, 4);
         if (thread == 1) world.add(node, 3);
         world.meet(node);
         if (thread == 0) world.locked_add(node, 0, 2);
         if (thread == 1) world.lock(node, 0), world.unlock(node, 0), world.atomic_add(node, 0);
         world.meet(node);
         if (thread == 0) world.see(node, 0);
     },
     Races::off, true, true},
    // Each node merges a block of its own and one of the other's, and asks for the locks together.
    {"merges_together", 2, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.add(node, thread);
         world.add(node, 2 + thread);
         world.meet(node);
         world.see(node, 1 - thread);
         world.see(node, 3 - thread);
     },
     Races::off, true},
    // A change that came along with a notice is not what a newer notice tells of; and comes where a
    // node has bytes of its own.
    {"merges_carried", 2, 1, 16, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.write(node, 0, 7);
         world.meet(node);
         if (thread == 0) {
             world.lock(node, 0), world.write(node, 0, 111), world.unlock(node, 0), world.tell();
         } else {
             world.await_told(1), world.lock(node, 0), world.see_at_least(node, 0, 111);
             world.unlock(node, 0);
         }
         world.write(node, thread, 112);
         world.meet(node);
         world.see_at_least(node, 1 - thread, 112);
     },
     Races::off, true},
    // Two nodes take the locks of two blocks of a third, which holds them now and then.
    {"merges_of_three", 3, 1, 4, false, hops, Second::heap_twice,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.atomic_add(node, 4), world.atomic_add(node, 5);
         if (thread == 0) return;
         world.add(node, thread - 1);
         world.add(node, 2 + thread - 1);
         node.memory().release(dsm::Others::stopped);
     }},
    // Two nodes write two words of one block, each under its own lock: merges and rebases.
    {"two_words", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.locked_add(node, thread, thread);
         world.locked_add(node, 1 - thread, 1 - thread);
     },
     Races::off, true},
    {"two_words_mprotect", 2, 1, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.locked_add(node, thread, thread);
         world.locked_add(node, 1 - thread, 1 - thread);
     },
     Races::off, true},
    // One thread fetches a block by a notice while another learns that leases have ended.
    {"fetch_and_acquire", 2, 2, 1, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.see(node, 1);
         if (thread == 2) world.locked_add(node, 0, 0);
         if (thread == 2) world.add_and_drop_notice(node);
         if (thread == 1) world.lock(node, 0), world.unlock(node, 0);
         if (thread == 1) world.lock(node, 0), world.see(node, 0), world.unlock(node, 0);
     },
     Races::off, true},
    {"three_nodes", 3, 1, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t, ClusterNode& node) { world.atomic_add(node, 0); },
     Races::off, false},
    // One thread writes and releases while another makes the block stale, with nothing else to say.
    {"write_and_acquire", 2, 2, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.locked_add(node, 0, 0);
         if (thread == 1) world.lock(node, 1), world.unlock(node, 1);
         if (thread == 2) world.locked_add(node, 1, 1);
         if (thread == 2) world.lock(node, 0), world.see(node, 0), world.unlock(node, 0);
     },
     Races::off, true},
    {"two_threads", 2, 2, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread < 2) world.locked_add(node, thread, thread);
         if (thread == 2) world.locked_add(node, 0, 0);
         if (thread == 2) world.locked_add(node, 1, 1);
     },
     Races::off, true},
    {"atomics", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.atomic_add(node, 0);
         world.locked_add(node, 0, 1);
         world.atomic_add(node, 0);
         if (thread == 0) world.locked_add(node, 0, 1);
     },
     Races::off, true},
    // An atomic write tells of a plain one before it, to a plain read.
    {"flag_by_atomic", 2, 1, 4, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.add(node, 0), world.atomic_set(node, 2);
         if (thread == 1) world.look(node, 2, 0), world.look(node, 2, 0);
     },
     Races::off, true},
    // The other node has read both before; a second thread of it learns of them meanwhile.
    {"flag_and_acquire", 2, 2, 4, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.read(node, 0), world.look(node, 2, 0), world.look(node, 2, 0);
         if (thread == 1) world.lock(node, 0), world.unlock(node, 0);
         if (thread == 2) world.add(node, 0), world.add(node, 2);
         if (thread == 2) world.lock(node, 0), world.unlock(node, 0);
     },
     Races::off, true},
    // Two plain writes of a thread, while a second one of its node releases. The flag's block was
    // written before: the release has it to look at already, and not the data's.
    {"flag_and_release", 2, 2, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.read(node, 0), world.add(node, 3);
         if (thread == 0) world.add(node, 0), world.add(node, 2);
         if (thread == 1) world.lock(node, 0), world.unlock(node, 0);
         if (thread == 2) world.lock(node, 0), world.unlock(node, 0), world.look(node, 2, 0);
     },
     Races::off, true},
    // Two threads of a node: one merges a block that has become stale under its own write, with
    // bytes of a release that the other learns of while the first looks at the block again.
    {"held_back_and_fault", 2, 2, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 2) {
             world.locked_add(node, 0, 0), world.tell();
             world.locked_add(node, 1, 0), world.tell();
         } else if (thread == 1) {
             world.add(node, 1);
             world.await_told(1), world.lock(node, 0);
             world.await_told(2), world.unlock(node, 0), world.tell();
             world.see_at_least(node, 0, 1);
         } else {
             world.await_told(3), world.lock(node, 1), world.unlock(node, 1);
         }
     },
     Races::off, true},
    // A flag through a third node.
    {"flag_handed_on", 3, 1, 4, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.add(node, 0), world.atomic_set(node, 2);
         if (thread == 1 && world.read(node, 2) > 0) world.atomic_set(node, 3);
         if (thread == 2) world.look(node, 3, 0);
     },
     Races::off, true},
    // What the second node has merged needs a release of the first, which that owes yet when it
    // tells the third of the second's.
    {"own_release_needed", 3, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 1) {
             world.add(node, 3), world.tell();
             world.await_told(2), world.lock(node, 0), world.unlock(node, 0), world.tell();
         } else if (thread == 0) {
             world.await_told(1), world.add(node, 0), world.atomic_set(node, 2), world.tell();
             world.await_told(3), world.hand_on(node, 0), world.tell();
         } else {
             world.await_told(4), world.lock(node, 0), world.look(node, 2, 0);
         }
     },
     Races::off, true},
    // Both write the block of the flag, too: releases that merge what the other's has not ended.
    {"flags_in_one_block", 2, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.add(node, thread);
         world.add(node, 2 + thread);
         world.lock(node, thread), world.unlock(node, thread);
         world.look(node, 3 - thread, 1 - thread);
     },
     Races::off, true},
    {"three_nodes_twice", 3, 1, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         world.atomic_add(node, 0);
         if (thread > 0) world.atomic_add(node, 0);
     }},
};

}  // namespace hiroba::sim_test
