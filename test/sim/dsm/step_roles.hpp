// SPDX-License-Identifier: BSD-3-Clause
// Role: which threads use which words in which phase of a program of steps (step_program.hpp): so
// it has no data race, and each of its reads one right value.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/random.hpp"

namespace hiroba::sim_test {

/// What the threads of a program mostly do.
enum class StepShape : std::uint8_t {
    any,        ///< all of it, by every thread
    wandering,  ///< a block is written by one thread for some phases, then by another, or by many
    releases,   ///< likewise, beside a thread of node 0 that mostly releases and flushes
    atomics,    ///< node 0 writes and counts in blocks, then all count, beside its releases
    first_use,  ///< one or two phases on blocks that no node has touched, many calls that publish
    counters,   ///< node 0's threads count in all blocks, others now and then
};
inline constexpr std::array<std::string_view, 6> step_shape_names{
    "any", "wandering", "releases", "atomics", "first_use", "counters"};
/// Those that a search without a shape goes through. The others are asked for.
inline constexpr std::uint32_t step_shapes_in_turn = 5;

inline constexpr std::uint32_t step_blocks = 3, words_of_block = 6;
inline constexpr std::uint32_t step_words = step_blocks * words_of_block, step_locks = 2;

/// What a word is in a phase.
struct WordRole {
    enum class Kind : std::uint8_t {
        owned,     ///< one thread reads and writes it
        readable,  ///< every thread reads it
        locked,    ///< by the thread that has a lock
        atomic,    ///< in atomics alone, by every thread
        counted,   ///< likewise, by node 0's
    } kind = Kind::readable;
    std::uint32_t who = 0;  ///< the thread, or the lock
};

using PhaseRoles = std::array<WordRole, step_words>;

std::vector<PhaseRoles> draw_roles(Random& random, StepShape shape, std::uint32_t threads,
                                   std::uint32_t threads_of_first, std::uint32_t phases);

}  // namespace hiroba::sim_test
