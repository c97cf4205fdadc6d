// SPDX-License-Identifier: BSD-3-Clause
// Role: what the walk through all orders says of a program whose right answer is known.
#include "sim/dsm/state_graph.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

namespace hiroba::sim_test {
namespace {

using net::sim::Scheduler;

/// A reader looks at a word in two steps, as at what lies under a version that is odd while it
/// changes; another thread waits for the reader, and looks in vain meanwhile.
struct TwoStepLook {
    std::uint64_t version = 1;  ///< odd: being changed
    bool read = false;
    std::array<std::uint64_t, 3> at{};  ///< where each thread stands, and what it holds

    void write(Scheduler& scheduler) {
        at[0] = 1;
        scheduler.step();
        version = 2;
        at[0] = 2;
    }
    void look(Scheduler& scheduler) {
        for (;;) {
            at[1] = 1;
            scheduler.step();
            const std::uint64_t seen = version;
            at[1] = 10 + seen;
            scheduler.step();
            if (seen % 2 == 0) break;
            at[1] = 2;
            scheduler.pass();
        }
        read = true;
        at[1] = 100;
    }
    void wait(Scheduler& scheduler) {
        at[2] = 1;
        while (!read) scheduler.pass();
        at[2] = 2;
    }
    std::uint64_t digest() const {
        std::uint64_t sum = version << 1 | read;
        for (const std::uint64_t each : at) sum = sum * 1'000 + each;
        return sum;
    }
};

/// @return  from how many states nothing leads to the end, with the states seen
std::pair<std::uint64_t, std::uint64_t> explore(bool writes) {
    StateGraph graph{10'000};
    net::sim::FiberStacks stacks;
    while (!graph.is_done()) {
        graph.begin_run();
        TwoStepLook world;
        Scheduler scheduler{stacks, {.chooser = &graph}};
        graph.ask({[&] { return world.digest(); }, [] { return std::string{}; }, {}, {}, {}});
        const std::array<std::function<void()>, 3> threads{
            [&] { world.wait(scheduler); },  // first, so that its looks are all that is left
            [&] {
                if (writes) world.write(scheduler);
            },
            [&] { world.look(scheduler); }};
        for (const auto& thread : threads) {
            scheduler.spawn(NodeId{0}, [&] {
                scheduler.begin_choice(threads.size());
                thread();
            });
        }
        graph.end_run(scheduler.run(), {});
    }
    EXPECT_EQ(graph.failure(), "");
    return {graph.find_hanging_states(), graph.states()};
}

// A look that began before the write and ends behind it is no reason to leave the reader out,
// where all that is left are looks of others that change nothing.
TEST(StateGraph, finds_the_way_on_from_a_look_that_was_too_early) {
    const auto [hanging, states] = explore(true);
    EXPECT_EQ(hanging, 0);
    EXPECT_GT(states, 10);
}

TEST(StateGraph, tells_of_a_reader_that_nobody_writes_for) {
    const auto [hanging, states] = explore(false);
    EXPECT_EQ(hanging, states);
}

}  // namespace
}  // namespace hiroba::sim_test
