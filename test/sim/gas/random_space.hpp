// SPDX-License-Identifier: BSD-3-Clause
// Role: a random program on a relocatable space of simulated nodes, and whether what its threads
// saw is linearizable, word by word.
// Invariant: equal arguments give equal runs.
#pragma once

#include <cstdint>
#include <string>

#include "net/provider/sim/fiber.hpp"

namespace hiroba::sim_test {

struct RandomSpace {
    std::uint64_t seed = 1;  ///< nodes (2 to 5), threads, wire, directory and steps follow from it
    bool wide = false;       ///< 65 to 128 nodes, of which six work and all are sharers
    std::uint32_t steps = 25;  ///< of each thread
    bool crash = false;        ///< one node dies on the way
    bool tell = false;         ///< print every access
};

struct RandomSpaceRun {
    std::string fault;  ///< empty: linearizable, and every thread came to its end
    std::uint64_t accesses = 0, relocations = 0, misses = 0, lost = 0, events = 0;
};

RandomSpaceRun run_random_space(net::sim::FiberStacks& stacks, const RandomSpace& what);

}  // namespace hiroba::sim_test
