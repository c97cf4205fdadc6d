// SPDX-License-Identifier: BSD-3-Clause
// Role: a random program on simulated nodes.
// Invariant: everything follows from the seed: the nodes' options, the wire, the program, the order
// of turns. Nothing runs between an access and its entry in the oracle.
#pragma once

#include <cstdint>
#include <string>

#include "memory_programs/random_program.hpp"
#include "sim/dsm/cluster.hpp"

namespace hiroba::sim_test {

struct ProgramOutcome {
    std::string failure;  ///< empty: right
    dsm::NodeView::RowCounts rows{};
    std::uint64_t virtual_ns = 0, events = 0, trace_hash = 0;
};

/// Runs the program of `seed`. A broken invariant of the engine ends the process.
ProgramOutcome run_random_program(net::sim::FiberStacks& stacks, std::uint64_t seed,
                                  const ProgramShape& shape);
/// Runs a program of which each phase has a race; wrong where none is told in some phase.
ProgramOutcome run_racy_program(net::sim::FiberStacks& stacks, std::uint64_t seed,
                                const ProgramShape& shape);

}  // namespace hiroba::sim_test
