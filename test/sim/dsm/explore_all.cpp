// SPDX-License-Identifier: BSD-3-Clause
// Role: all orders of all steps of small programs on 2 and 3 nodes with 1 and 2 blocks, the
// invariants checked in every state. Usage: sim_explore_all [states=N] [planted|twice]
// [scenario...]
//   states=N  gives a scenario up after so many states   planted  succeeds if one goes wrong
//   twice     also with every run from its beginning, without a checkpoint: both must find the same
//
// A step is an access to memory that another node, or another thread of the node, may use: a load,
// a store or a compare-and-swap of a word, a copy of a block, a call of the fault engine, a
// synchronization of the program. What lies between two steps nobody else sees.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/address_hint.hpp"
#include "base/clock.hpp"
#include "sim/dsm/checkpoint.hpp"
#include "sim/dsm/small_world.hpp"
#include "sim/dsm/state_graph.hpp"

namespace hiroba::sim_test {
namespace {

/// Where the second block of a scenario lies, and a third.
enum class Second : std::uint8_t { none, heap, heap_twice, stack };

/// Whether a scenario's nodes look for races, and what they must tell at its end in each order.
/// any: what a scenario's threads look for themselves.
enum class Races : std::uint8_t { off, none, some, any };

struct Scenario {
    const char* name;
    std::uint32_t nodes, threads_of_first, notices_max;
    bool as_mprotect;
    std::uint32_t lock_hops;
    Second second;
    void (*live)(SmallWorld& world, std::uint32_t thread, ClusterNode& node);
    Races races = Races::off;
    /// Atomics are releases, and nodes make the releases that others want. Elsewhere an atomic
    /// orders itself alone, and nobody waits for a release.
    bool pays = false;
    bool relaxed = false;    ///< atomics order themselves alone, all the same
    bool exclusive = false;  ///< what one node alone uses is exclusive
};

constexpr unsigned hops = 8;

void write_after_meeting(SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
    if (thread == 0) world.write(node, 0, 7);
    world.meet(node);
    world.write(node, 0, 111 + thread);
    world.meet(node);
}

/// From few states to many.
constexpr Scenario scenarios[] = {
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
    {"race_and_publisher", 2, 1, 4, false, hops, Second::none,
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
         world.fork(node);
         world.see(node, 0);
         if (thread == 1) world.add(node, 1);
         world.fork(node);
         world.see(node, 1);
     },
     Races::off, true},
    // The same, and ends with a reduction into it.
    {"fork_and_reduction", 2, 1, 4, false, hops, Second::none,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.add(node, 0);
         if (thread == 1) world.see(node, 1);
         world.fork(node);
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
    // Two plain writes of a thread, while a second one of its node releases.
    {"flag_and_release", 2, 2, 4, false, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.read(node, 0), world.read(node, 2);
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
    // A flag through a third node.
    {"flag_handed_on", 3, 1, 4, true, hops, Second::heap,
     [](SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
         if (thread == 0) world.add(node, 0), world.atomic_set(node, 2);
         if (thread == 1 && world.read(node, 2) > 0) world.atomic_set(node, 3);
         if (thread == 2) world.look(node, 3, 0);
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

struct Options {
    std::uint64_t states_max = ~std::uint64_t{0};
    bool planted = false, twice = false;
};

ClusterOptions options_of(const Scenario& scenario, StateGraph& graph) {
    ClusterOptions options;
    options.nodes = scenario.nodes;
    options.threads_of_first = scenario.threads_of_first;
    options.with_locks = false;
    options.with_payers = scenario.pays;
    if (!scenario.pays || scenario.relaxed)
        options.memory.atomics = dsm::MemoryOptions::Atomics::relaxed;
    options.memory.exclusive = scenario.exclusive;
    options.memory.notices_max = scenario.notices_max;
    using Race = dsm::MemoryOptions::Race;
    options.memory.race = scenario.races == Races::off ? Race::off : Race::report;
    options.memory.lease = 2;
    options.memory.lock_hops = scenario.lock_hops;
    options.engine.as_mprotect = scenario.as_mprotect;
    options.engine.forgotten = scenario.as_mprotect ? 0 : 100;
    options.engine.steps = true;
    options.scheduling.chooser = &graph;
    options.scheduling.limit_ns = 50'000'000;
    options.wire.steps = true;
    return options;
}

std::vector<std::uintptr_t> blocks_of(const Scenario& scenario, const dsm::AddressMap& map) {
    std::vector<std::uintptr_t> blocks{map.heap_arena(NodeId{0}).address};
    if (scenario.second == Second::heap_twice) {
        // Apart: blocks in a row that are written together are one notice.
        const std::uintptr_t heap = blocks.front();
        blocks = {heap + page_bytes, heap, heap + 2 * page_bytes};
    }
    if (scenario.second == Second::heap) blocks.push_back(map.heap_arena(NodeId{1}).address);
    if (scenario.second == Second::stack) {
        // The second page: the first guards the stack.
        blocks.push_back(map.stack_slice(map.shape().threads_per_node).address + page_bytes);
    }
    return blocks;
}

constexpr std::size_t stacks_of_run = 16;

/// Has `stacks` hold what a run needs, so that its books do not grow inside one.
void fill(net::sim::FiberStacks& stacks) {
    std::vector<std::byte*> taken(stacks_of_run);
    for (std::byte*& stack : taken) stack = stacks.take();
    for (std::byte* const stack : taken) stacks.give(stack);
}

/// @param checkpoint  of which this is the body; or nullptr, then it makes one run and returns
void run_once(const Scenario& scenario, StateGraph& graph, Checkpoint* checkpoint) {
    reset_address_hints();
    const RunArena arena;
    net::sim::FiberStacks stacks;
    fill(stacks);
    SmallWorld* here = nullptr;
    ClusterOptions options = options_of(scenario, graph);
    options.payer_comes = [&](ClusterNode& node) { here->come(node); };
    Cluster cluster{stacks, options};
    SmallWorld world{cluster, blocks_of(scenario, cluster.map())};
    here = &world;
    graph.ask({[&] { return world.digest(); }, [&] { return world.broken(); },
               [=] {
                   if (checkpoint != nullptr) checkpoint->mark();
               }});
    const auto outcome = cluster.run([&](std::uint32_t thread, ClusterNode& node) {
        world.come(node);
        scenario.live(world, thread, node);
    });
    std::string failure = world.failure();
    const bool ended = outcome == net::sim::Scheduler::Outcome::ended;
    if (failure.empty() && scenario.races == Races::none && world.raced())
        failure = "a race told of writes that are in order";
    if (failure.empty() && ended && scenario.races == Races::some && !world.raced())
        failure = "a race not told";
    graph.end_run(outcome, failure);
    if (checkpoint == nullptr) return;
    const OutsideRunArena here_no_more;
    checkpoint->leave();
}

/// Makes runs until nothing is open.
void explore_with(const Scenario& scenario, StateGraph& graph, bool with_checkpoint) {
    std::optional<Checkpoint> checkpoint;
    if (with_checkpoint) checkpoint.emplace([&] { run_once(scenario, graph, &*checkpoint); });
    while (!graph.is_done()) {
        graph.begin_run();
        with_checkpoint ? checkpoint->go() : run_once(scenario, graph, nullptr);
    }
}

/// Whether all is right.
bool explore(const Scenario& scenario, const Options& options) {
    StateGraph graph{options.states_max};
    const std::uint64_t start_ns = now_ns();
    explore_with(scenario, graph, true);
    std::string verdict = graph.is_complete() ? "all orders right" : "given up, right so far";
    const std::uint64_t hanging = graph.is_complete() ? graph.find_hanging_states() : 0;
    if (hanging > 0) verdict = "WRONG: " + std::to_string(hanging) + " states never end";
    if (!graph.failure().empty()) verdict = "WRONG: " + graph.failure();
    if (options.twice) {
        StateGraph anew{options.states_max};
        explore_with(scenario, anew, false);
        if (anew.failure() != graph.failure() || anew.runs() != graph.runs() ||
            anew.states() != graph.states() || anew.steps() != graph.steps())
            verdict = "WRONG: not what runs from the beginning find, " +
                      std::to_string(anew.runs()) + " runs, " + std::to_string(anew.states()) +
                      " states";
    }
    std::printf("%-22s %u nodes, %u threads: %9" PRIu64 " states, %9" PRIu64
                " steps, longest way %4zu, %9" PRIu64 " runs, %6.1f s: %s\n",
                scenario.name, scenario.nodes, scenario.nodes - 1 + scenario.threads_of_first,
                graph.states(), graph.steps(), graph.longest(), graph.runs(),
                static_cast<double>(now_ns() - start_ns) * 1e-9, verdict.c_str());
    if (hanging > 0 || !graph.failure().empty()) std::printf("  way:%s\n", graph.way().c_str());
    std::fflush(stdout);
    return !verdict.starts_with("WRONG");
}

/// As explore(), in a process of its own: a broken assertion of the engine is a verdict too.
bool explore_apart(const Scenario& scenario, const Options& options) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        const bool right = explore(scenario, options);
        std::fflush(nullptr);
        _exit(right ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) std::abort();
    if (WIFSIGNALED(status)) {
        std::printf("%-22s WRONG: the engine stopped itself\n", scenario.name);
    }
    return status == 0;
}

int run(int argc, char** argv) {
    // Mappings of the heap would lie where a later run's are to lie again.
    mallopt(M_MMAP_MAX, 0);
    Options options;
    std::vector<std::string_view> only;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word.starts_with("states=")) {
            options.states_max = std::strtoull(argv[i] + 7, nullptr, 10);
        } else if (word == "planted") {
            options.planted = true;
        } else if (word == "twice") {
            options.twice = true;
        } else {
            only.push_back(word);
        }
    }
    bool right = true;
    std::size_t found = 0;
    for (const Scenario& scenario : scenarios) {
        if (!only.empty() && std::find(only.begin(), only.end(), scenario.name) == only.end()) {
            continue;
        }
        ++found;
        right &= explore_apart(scenario, options);
        if (options.planted && !right) return 0;
    }
    if (found == 0 || found < only.size()) {
        std::fprintf(stderr,
                     "usage: sim_explore_all [states=N] [planted|twice] [scenario...]; there are");
        for (const Scenario& scenario : scenarios) std::fprintf(stderr, " %s", scenario.name);
        std::fprintf(stderr, "\n");
        return 64;
    }
    return right == options.planted;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) { return hiroba::sim_test::run(argc, argv); }
