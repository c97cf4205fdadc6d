// SPDX-License-Identifier: BSD-3-Clause
// Role: prints what a barrier in the tree of arity 8 takes between 2 to N simulated nodes, beside
// the levels of the tree; bench/kick_levels.py draws it. Usage: sim_kick_levels [N]
// Fails when a barrier does not hold, or takes more time for each level than twice the least.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "sim/kick_barriers.hpp"

int main(int count, char** words) {
    using namespace hiroba::sim_test;
    const unsigned long nodes_max = count > 1 ? std::strtoul(words[1], nullptr, 10) : 128;
    if (nodes_max < 2 || nodes_max > 65536) {
        std::fprintf(stderr, "sim_kick_levels %s: wanted 2 to 65536 nodes\n", words[1]);
        return 64;
    }
    double least = 1e18, most = 0;
    std::printf("nodes,log8,levels,barrier_ns\n");
    for (std::uint32_t nodes = 2; nodes <= nodes_max; nodes *= 2) {
        hiroba::net::sim::FiberStacks stacks;
        KickBarriers what{.nodes = nodes, .phases = 5, .scheduling = {}, .wire = {}};
        what.wire.jitter_ns = 0;
        const KickBarriersRun run = run_kick_barriers(stacks, what);
        if (!run.fault.empty()) {
            std::fprintf(stderr, "%u nodes: %s\n", nodes, run.fault.c_str());
            return 1;
        }
        const std::uint32_t levels = hiroba::net::kick::tree_levels(nodes);
        const double log8 = std::ceil(std::log2(nodes) / 3 - 1e-9);
        std::printf("%u,%.0f,%u,%lu\n", nodes, log8, levels, run.phase_ns);
        std::fflush(stdout);
        least = std::min(least, static_cast<double>(run.phase_ns) / levels);
        most = std::max(most, static_cast<double>(run.phase_ns) / levels);
    }
    return most <= 2 * least ? 0 : 1;
}
