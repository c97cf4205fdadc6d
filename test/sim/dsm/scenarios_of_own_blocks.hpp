// SPDX-License-Identifier: BSD-3-Clause
// Role: as scenarios.hpp, of blocks that one node alone uses: exclusive, taken untouched, handed
// over (docs/protocol.md#exclusive).
#pragma once

#include "base/thread_context.hpp"
#include "sim/dsm/scenario.hpp"

namespace hiroba::sim_test {

/// From few states to many.
inline constexpr Scenario scenarios_of_own_blocks[] = {
    // A block that one node alone has written is exclusive there when the other comes for it: for a
    // flag that lies in it, and to write it, too.
    {"exclusive", 2, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 2; ++round) {
             if (thread == 0) world.add(node, 2), world.add(node, 0);
             world.meet(node);
         }
         if (thread == 0) world.add(node, 2), world.add(node, 0);
         if (thread == 1) world.look(node, 0, 2);
     },
     Races::off, true, false, true},
    {"exclusive_and_lock", 2, 1, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 2; ++round) {
             if (thread == 0) world.add(node, 0);
             world.meet(node);
         }
         world.locked_add(node, 0, 0);
         if (thread == 0) world.locked_add(node, 0, 0);
     },
     Races::none, true, false, true},
    // Nodes that do not meet: the writer asks what the other has acquired by the lock. That one has
    // an older copy, in which it looks at a word of its own.
    {"exclusive_between_locks", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 1) world.read(node, 1);
         for (unsigned round = 0; round < 3 - thread; ++round) {
             world.lock(node, 0);
             if (thread == 0) world.add(node, 0);
             if (thread == 1 && round == 1) world.see(node, 0);
             world.unlock(node, 0);
         }
     },
     Races::any, true, false, true},
    // The other node reads it each time, before and after it is told not to go by notices.
    {"exclusive_and_reader", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 3; ++round) {
             if (thread == 0) world.add(node, 0);
             world.meet(node);
             if (thread == 1) world.see(node, 0);
             world.meet(node);
         }
     },
     Races::none, true, false, true},
    // The other node comes for it while it is published, and so gets it with its lock, which comes
    // back with nothing published: an atomic gives way to a write.
    {"exclusive_and_lock_back", 2, 2, 4, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.add(node, 0), node.memory().flush(), world.tell();
             world.add(node, 0), node.memory().flush(), world.tell();
             world.await_told(3), world.add(node, 2), node.memory().flush(), world.tell();
             world.write(node, 0, 7), node.memory().flush();
         }
         if (thread == 1) world.await_told(4), world.fetch_add(node, 1, 1);
         if (thread == 2) {
             world.await_told(1), world.read(node, 0);
             world.await_told(2), world.add(node, 3), node.memory().flush(), world.tell();
         }
     },
     Races::off, true, false, true},
    // A block that is held for atomics in a row; the other node makes one there, and looks for what
    // came before.
    {"held_and_wanted", 2, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.write(node, 2, 2), world.atomic_add(node, 0), world.atomic_add(node, 0);
             world.write(node, 2, 3), world.tell(), world.atomic_add(node, 0);
         }
         if (thread == 1) world.await_told(1), world.look(node, 0, 2), world.atomic_add(node, 0);
     },
     Races::off, true, false, true},
    // With a plain write between them, until the nodes meet; the other one has an older copy.
    {"held_until_meeting", 2, 1, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 1) world.read(node, 1), world.tell();
         if (thread == 0) {
             world.await_told(1), world.atomic_add(node, 0), world.atomic_add(node, 0);
             world.write(node, 1, 5), world.atomic_add(node, 0);
         }
         world.meet(node);
         world.see_at_least(node, 1, 5);
         world.atomic_add(node, 0);
     },
     Races::off, true, false, true},
    // Threads of one node make theirs at once; the other node comes for the block meanwhile.
    {"held_by_threads", 2, 2, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.short_atomic_add(node, 0), world.short_atomic_add(node, 0);
         if (thread == 1) world.short_atomic_add(node, 1), world.tell();
         if (thread == 2) world.await_told(1), world.atomic_add(node, 0);
     },
     Races::off, true, false, true},
    // A stack, on which its node makes atomics in a row: it stays accessible when another has come.
    {"held_stack", 2, 1, 4, false, hops, Second::stack,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 1) world.atomic_add(node, 2), world.atomic_add(node, 2);
         if (thread == 0) world.atomic_add(node, 2);
         world.meet(node);
         if (thread == 1) world.see_at_least(node, 2, 3);
     },
     Races::off, true, false, true},
    // Another thread of the node makes a release meanwhile: it may have passed by what came before
    // the last of these atomics.
    {"held_beside_release", 2, 2, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.write(node, 2, 2), world.atomic_add(node, 0), world.atomic_add(node, 0);
             world.tell(), world.write(node, 2, 3), world.atomic_add(node, 0);
         }
         if (thread > 0) world.await_told(thread);
         if (thread == 1) node.memory().release(dsm::Others::running), world.tell();
         if (thread == 2) world.look(node, 0, 2);
     },
     Races::off, true, false, true},
    // A block that only atomics write; the other node reads it and what came before, and makes one.
    {"exclusive_by_atomics", 2, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.write(node, 2, 4), world.atomic_add(node, 0), world.atomic_add(node, 0);
         }
         if (thread == 1) world.read(node, 0);
         world.meet(node);
         if (thread == 0) world.atomic_add(node, 0), world.atomic_add(node, 0);
         world.meet(node);
         if (thread == 0) world.write(node, 2, 5), world.atomic_add(node, 0);
         if (thread == 1) world.look(node, 0, 2), world.atomic_add(node, 0);
     },
     Races::off, true, false, true},
    // A stack, which stays accessible at its node also when another has come for it and written it.
    {"exclusive_stack", 2, 1, 4, false, hops, Second::stack,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 2; ++round) {
             if (thread == 1) world.add(node, 2);
             world.meet(node);
         }
         if (thread == 1) world.add(node, 2);
         world.locked_add(node, 0, 3);
         if (thread == 1) world.locked_add(node, 0, 3);
     },
     Races::none, true, false, true},
    {"exclusive_and_two", 3, 1, 1, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 2; ++round) {
             if (thread == 0) world.add(node, 0);
             world.meet(node);
         }
         if (thread > 0) world.atomic_add(node, 0);
     },
     Races::off, true, false, true},
    {"exclusive_and_race", 2, 1, 4, true, hops, Second::none, write_after_meeting, Races::some,
     true, false, true},
    // A block that no node has touched becomes exclusive where blocks are written in a row; its
    // initial home reads it at any time.
    {"untouched", 2, 1, 4, false, hops, Second::heap_twice,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.see(node, 4);
         if (thread == 1) world.write(node, 2, 7), world.write(node, 0, 7), world.write(node, 5, 7);
     },
     Races::none, true, false, true},
    {"untouched_and_reader", 2, 1, 4, false, hops, Second::heap_twice,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.see(node, 4);
         if (thread == 1) world.write(node, 2, 7), world.write(node, 0, 7), world.write(node, 5, 7);
         world.meet(node);
         if (thread == 0) world.see_or_told(node, 5, 7);
     },
     Races::none, true, false, true},
    // A block of one node's own goes to the other whole, and back.
    {"handed_over", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 4; ++round) {
             if (thread == 0) world.add(node, 0);
             world.meet(node);
         }
         if (thread == 1) world.add(node, 0);
         world.meet(node);
         if (thread == 0) world.add(node, 0);
         world.meet(node);
     },
     Races::none, true, false, true},
    // The one that has handed it over comes back to it before the other has come.
    {"handed_over_and_reader", 2, 1, 4, true, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 3; ++round) {
             if (thread == 0) world.add(node, 0);
             world.meet(node);
         }
         world.meet(node);
         if (thread == 0) world.see(node, 0);
         world.meet(node);
         if (thread == 1) world.add(node, 0);
         world.meet(node);
         if (thread == 0) world.see(node, 0);
     },
     Races::none, true, false, true},
    // A third node reads it while the next one writes it.
    {"handed_over_and_two", 3, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 3; ++round) {
             if (thread == 0) world.add(node, 0);
             world.meet(node);
         }
         world.meet(node);
         if (thread == 2) world.see(node, 0);
         if (thread == 1) world.add(node, 1);
         world.meet(node);
         if (thread == 2) world.see(node, 1);
     },
     Races::none, true, false, true},
    // The other wants it back while the node that has taken it writes, or behind that.
    {"handed_over_and_back", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 4; ++round) {
             if (thread == 1) world.add(node, 0);
             world.meet(node);
         }
         if (thread == 0) world.write(node, 1, 7);
         if (thread == 1) world.read(node, 0);
         world.meet(node);
         world.see_at_least(node, 1, 7);
     },
     Races::off, true, false, true},
    // An atomic there, which no release tells of, is found by the other's.
    {"handed_over_and_atomic", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 4; ++round) {
             if (thread == 1) world.add(node, 0);
             world.meet(node);
         }
         if (thread == 0) world.write(node, 1, 7), world.atomic_add(node, 0), world.tell();
         if (thread == 1) world.await_told(1), world.atomic_add(node, 0);
         world.meet(node);
     },
     Races::off, true, false, true},
    // Another thread of the node releases while a block is taken and written, and so is one behind
    // it: the release finds that alone. What came before it goes with it.
    {"taken_beside_release", 2, 2, 4, false, hops, Second::heap_twice,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) {
             world.write(node, 3, 1), world.write(node, 0, 7);
             world.write(node, 4, 3), world.write(node, 2, 3);
         }
         if (thread == 1) node.memory().release(dsm::Others::running), world.tell();
         if (thread == 2) world.await_told(1), world.look(node, 2, 4);
     },
     Races::off, true, false, true},
    // It wants it behind a release that has nothing else to tell, at a place where nothing is
    // handed
    // over.
    {"handed_over_and_released", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 4; ++round) {
             if (thread == 1) world.add(node, 0);
             world.meet(node);
         }
         if (thread == 0) {
             world.write(node, 1, 7);
             this_thread().place.address = 1;
             node.memory().release(dsm::Others::running), world.tell();
         }
         if (thread == 1) world.await_told(1), world.see_at_least(node, 1, 7);
     },
     Races::off, true, false, true},
    // It is handed over with a flag whose data the other has not acquired.
    {"handed_over_and_flag", 2, 1, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         for (unsigned round = 0; round < 2; ++round) {
             if (thread == 0) world.add(node, 2), world.add(node, 0);
             world.meet(node);
         }
         if (thread == 0) {
             world.add(node, 2), world.add(node, 0);
             world.lock(node, 0), world.unlock(node, 0), world.tell();
         }
         if (thread == 1) world.await_told(1), world.write(node, 1, 5), world.look(node, 0, 2);
     },
     Races::off, true, false, true},
};

}  // namespace hiroba::sim_test
