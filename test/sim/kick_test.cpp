// SPDX-License-Identifier: BSD-3-Clause
// Role: kick barriers as a whole, board and endpoint and bad wire, in seeded runs: no node passes
// before all have arrived, and all pass. KICK_RUNS sets how many; KICK_SEED replays one.
#include <gtest/gtest.h>

#include "base/test_parts/given_number.hpp"
#include "sim/kick_barriers.hpp"

namespace hiroba::sim_test {
namespace {

using net::kick::Shape;

TEST(KickBarriers, hold_everybody_back_whatever_the_wire_does) {
    net::sim::FiberStacks stacks;
    const std::uint64_t first = given_number("KICK_SEED", 1), runs = given_number("KICK_RUNS", 200);
    for (std::uint64_t seed = first; seed < first + runs; ++seed) {
        KickBarriers what;
        what.shape = seed % 2 == 0 ? Shape::tree : Shape::all_to_all;
        what.nodes = static_cast<std::uint32_t>(what.shape == Shape::tree ? 1 + seed / 2 % 20
                                                                          : 1 + seed / 2 % 8);
        what.phases = 6;
        what.pause_max_ns = 3'000'000;
        what.scheduling.seed = seed;
        what.scheduling.limit_ns = 60'000'000'000;
        if (seed % 3 != 0) {
            what.wire.loss = 10;
            what.wire.duplicate = 10;
            what.wire.reorder = 40;
        }
        ASSERT_EQ(run_kick_barriers(stacks, what).fault, "")
            << "replay: KICK_RUNS=1 KICK_SEED=" << seed;
    }
}

TEST(KickBarriers, go_on_when_their_bytes_wrap) {
    for (const Shape shape : {Shape::tree, Shape::all_to_all}) {
        net::sim::FiberStacks stacks;
        KickBarriers what{.nodes = 3, .shape = shape, .phases = 1000, .scheduling = {}, .wire = {}};
        what.wire.reorder = 20;
        EXPECT_EQ(run_kick_barriers(stacks, what).fault, "");
    }
}

TEST(KickBarriers, take_time_by_the_levels_of_the_tree) {
    const auto phase_ns = [](std::uint32_t nodes) {
        net::sim::FiberStacks stacks;
        KickBarriers what{.nodes = nodes, .scheduling = {}, .wire = {}};
        what.wire.jitter_ns = 0;
        const KickBarriersRun run = run_kick_barriers(stacks, what);
        EXPECT_EQ(run.fault, "");
        return static_cast<double>(run.phase_ns);
    };
    const double one_level = phase_ns(9);
    EXPECT_NEAR(phase_ns(64) / one_level, 2, 0.6);
    EXPECT_NEAR(phase_ns(73) / one_level, 2, 0.6);
    EXPECT_NEAR(phase_ns(200) / one_level, 3, 0.9);
}

}  // namespace
}  // namespace hiroba::sim_test
