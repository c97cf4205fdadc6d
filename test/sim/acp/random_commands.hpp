// SPDX-License-Identifier: BSD-3-Clause
// Role: random commands of several ranks at once over slow and fast ways, and the oracle of their
// order: before every step of the simulation it looks at all memory, and no command may have shown
// an effect before the whole effect of each command that it is ordered behind.
#pragma once

#include <cstdint>
#include <string>

#include "net/provider/sim/fiber.hpp"

namespace hiroba::sim_test {

/// Runs the commands of `seed` to their end. Equal seeds give equal runs.
/// @return what was wrong; empty: nothing
std::string run_random_commands(net::sim::FiberStacks& stacks, std::uint64_t seed);

}  // namespace hiroba::sim_test
