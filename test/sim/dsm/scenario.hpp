// SPDX-License-Identifier: BSD-3-Clause
// Role: what one of the small programs is that sim_explore_all explores.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/dsm/small_world.hpp"

namespace hiroba::sim_test {

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
    /// orders itself alone, and no node waits for a release.
    bool pays = false;
    bool relaxed = false;    ///< atomics order themselves alone, all the same
    bool exclusive = false;  ///< what one node alone uses is exclusive

    /// Whether exchanges for several blocks are joined, as where memory is not mapped; elsewhere
    /// one block goes after the other, as where it is.
    constexpr bool joins() const { return std::string_view{name}.starts_with("merges_"); }
    /// Whether small changes go along with their notices.
    constexpr bool carries() const { return std::string_view{name} == "merges_carried"; }
    /// Behind how many atomics in a row a block is held: one, or none is.
    /// Atomics go by where the block is the node's own.
    constexpr bool opens() const { return std::string_view{name} == "held_by_threads"; }
    constexpr std::uint16_t row_min() const {
        return std::string_view{name}.starts_with("held_") ? 1 : UINT16_MAX;
    }
    /// Whether nodes ask each other at each release what they have acquired.
    constexpr bool asks() const {
        const std::string_view said{name};
        return said.ends_with("_between_locks") || said.starts_with("flushes_of_") ||
               said == "exclusive_and_lock_back";
    }
    /// Whether each block that is one node's own is handed over at that node's next meeting but
    /// one, or none is.
    constexpr auto hand_over() const {
        using HandOver = dsm::MemoryOptions::HandOver;
        return std::string_view{name}.starts_with("handed_") ? HandOver::all : HandOver::off;
    }
};

constexpr unsigned hops = 8;

inline void write_after_meeting(SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
    if (thread == 0) world.write(node, 0, 7);
    world.meet(node);
    world.write(node, 0, 111 + thread);
    world.meet(node);
}

/// Threads 0 and 1 are of node 0, of which 0 meets; thread 2 is node 1.
inline void lock_from_behind_meeting(SmallWorld& world, std::uint32_t thread, ClusterNode& node) {
    if (thread == 2) world.write(node, 0, 111);
    if (thread != 1) world.meet_beside(node);
    if (thread == 2) world.lock(node, 0), world.unlock(node, 0), world.tell();
    if (thread != 1) return;
    world.read(node, 0);
    world.await_told(1);
    world.lock(node, 0);
    world.see_at_least(node, 0, 111);
    world.unlock(node, 0);
}

}  // namespace hiroba::sim_test
