// SPDX-License-Identifier: BSD-3-Clause
// Role: a random program on simulated nodes in which any thread may come between any two steps of
// the engine; the programs of simulated_program.hpp have turns at messages and pauses alone.
// Invariant: everything follows from the seed and the shape. No two threads use a word at once but
// as its role of the phase allows (step_roles.hpp), so each read has one right value. Nothing runs
// between an access and its entry in what is right.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/dsm/cluster.hpp"
#include "sim/dsm/step_roles.hpp"

namespace hiroba::sim_test {

inline constexpr std::uint32_t step_nodes_max = 3;

struct StepOutcome {
    std::string failure;  ///< empty: right
    std::uint64_t steps = 0;
    std::array<dsm::MemoryCounts, step_nodes_max> counts{};  ///< of each node
};

/// Runs the program of `seed`; with `tell` prints its options and each access. A broken invariant
/// of the engine ends the process.
StepOutcome run_step_program(net::sim::FiberStacks& stacks, std::uint64_t seed, StepShape shape,
                             bool tell);

}  // namespace hiroba::sim_test
