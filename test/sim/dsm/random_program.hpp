// SPDX-License-Identifier: BSD-3-Clause
// Role: a random program without data races, on simulated nodes, and what it must see.
// Invariant: everything follows from the seed: the nodes' options, the wire, the program, the order
// of turns. What each thread does depends on its own share of the seed, not on the others.
//
// Why the oracle is exact: the program has no data race, so the last write to a variable in
// virtual time is the last one that happens before any read of it; and nothing runs between an
// access and its entry in the oracle.
#pragma once

#include <cstdint>
#include <string>

#include "sim/dsm/cluster.hpp"

namespace hiroba::sim_test {

struct ProgramShape {
    std::uint32_t nodes = 3;
    std::uint32_t steps = 50;  ///< of each thread, in all phases together
    bool tell = false;         ///< print every step
};

struct ProgramOutcome {
    std::string failure;  ///< empty: right
    dsm::Node::RowCounts rows{};
    std::uint64_t virtual_ns = 0, events = 0, trace_hash = 0;
};

/// Runs the program of `seed`. A broken invariant of the engine ends the process.
ProgramOutcome run_random_program(net::sim::FiberStacks& stacks, std::uint64_t seed,
                                  const ProgramShape& shape);

}  // namespace hiroba::sim_test
