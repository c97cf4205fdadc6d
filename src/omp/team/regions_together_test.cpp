// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/regions_together.hpp"

#include <gtest/gtest.h>

namespace hiroba::omp {
namespace {

/// Functions, as far apart as functions are.
const char codes[8 * 64] = {};

/// A program on a clock of its own.
struct Program {
    RegionsTogether regions{};
    std::uint64_t now_ns = 0;
    std::uint64_t all = 0, stayed = 0;

    /// Runs `steps` steps of regions, one for each function; took(function, stays, moved) ns each,
    /// `moved`: the region before was elsewhere.
    template <class Took>
    void run(std::uint64_t steps, std::size_t functions, Took&& took, std::size_t first = 0) {
        bool before = false;
        for (std::uint64_t step = 0; step < steps; ++step) {
            for (std::size_t function = 0; function < functions; ++function) {
                const bool stays = regions.begin(codes + (first + function) * 64, 2, now_ns);
                now_ns += took(function, stays, stays != before);
                before = stays;
                ++all;
                stayed += stays ? 1 : 0;
            }
        }
    }
};

TEST(RegionsTogether, are_spread_at_first) {
    Program program;
    program.run(3, 4, [](std::size_t, bool, bool) { return 1'000'000u; });
    EXPECT_EQ(program.stayed, 0u);
}

TEST(RegionsTogether, stay_where_all_of_them_take_less_time) {
    Program program;
    program.run(1000, 4, [](std::size_t, bool stays, bool moved) {
        return (stays ? 2'000'000u : 70'000'000u) + (moved ? 50'000'000u : 0u);
    });
    EXPECT_GT(program.stayed, 3'900u);
}

TEST(RegionsTogether, are_spread_where_that_takes_less_time) {
    Program program;
    program.run(10'000, 4, [](std::size_t, bool stays, bool moved) {
        return (stays ? 6'000'000u : 4'000'000u) + (moved ? 20'000'000u : 0u);
    });
    EXPECT_LT(program.stayed, 400u);
    EXPECT_GT(program.stayed, 0u);
}

// A region that was alone in staying would find its data elsewhere each time.
TEST(RegionsTogether, stay_although_none_would_alone) {
    Program program;
    program.run(1000, 2, [](std::size_t, bool stays, bool moved) {
        return (stays ? 5'000'000u : 8'000'000u) + (moved ? 9'000'000u : 0u);
    });
    EXPECT_GT(program.stayed, 1'900u);
}

TEST(RegionsTogether, do_not_move_for_little) {
    Program program;
    program.run(10'000, 2,
                [](std::size_t, bool stays, bool) { return stays ? 900'000u : 1'000'000u; });
    EXPECT_LT(program.stayed, 400u);
}

// Regions that are many times slower on one node: a trial gives up, and is not made often.
TEST(RegionsTogether, cost_little_where_one_node_is_slow) {
    Program program;
    const auto spread_ns = 10'000'000u;
    program.run(20'000, 4, [&](std::size_t, bool stays, bool moved) {
        return (stays ? 32 * spread_ns : spread_ns) + (moved ? 3 * spread_ns : 0u);
    });
    const double lost = static_cast<double>(program.now_ns) / (80'000.0 * spread_ns);
    EXPECT_LT(lost, 1.05);
}

TEST(RegionsTogether, that_are_long_are_never_tried) {
    Program program;
    program.run(1000, 2, [](std::size_t function, bool, bool) {
        return function == 0 ? RegionsTogether::long_ns + 1 : 1000u;
    });
    EXPECT_EQ(program.stayed, 0u);
}

// A start of small regions says nothing of what comes behind it.
TEST(RegionsTogether, are_spread_again_where_the_program_goes_on_to_others) {
    Program program;
    program.run(20'000, 2, [](std::size_t, bool stays, bool) { return stays ? 5'000u : 300'000u; });
    EXPECT_GT(program.stayed, 39'000u);
    program.stayed = program.all = 0;
    program.run(400, 4, [](std::size_t function, bool stays, bool) {
        return function < 2 ? 1u : stays ? 60'000'000u : 20'000'000u;
    });
    EXPECT_LT(program.stayed, 300u);
}

// A trial that begins while the program leaves a loop for good waits for that one's functions in
// vain.
TEST(RegionsTogether, are_tried_for_a_while_only) {
    Program program;
    const auto took = [](std::size_t function, bool stays, bool) {
        return function < 2 ? 3'000'000u : stays ? 300'000u : 100'000u;
    };
    program.run(3, 2, took);
    // The first trial begins in here, and knows more of the two functions above.
    program.run(
        100'000, 1, [&](std::size_t, bool stays, bool moved) { return took(2, stays, moved); }, 2);
    EXPECT_LT(program.stayed, 3'000u);
    EXPECT_GT(program.stayed, 0u);
}

TEST(RegionsTogether, that_grow_are_spread_again) {
    Program program;
    program.run(10'000, 2,
                [](std::size_t, bool stays, bool) { return stays ? 50'000u : 300'000u; });
    EXPECT_GT(program.stayed, 19'000u);
    const std::uint64_t begin_ns = program.now_ns;
    program.run(2'000, 2,
                [](std::size_t, bool stays, bool) { return stays ? 30'000'000u : 10'000'000u; });
    // Less than half of what staying would have taken.
    EXPECT_LT(program.now_ns - begin_ns, 4'000 * std::uint64_t{15'000'000});
}

// A long serial part behind one of many says nothing.
TEST(RegionsTogether, bear_a_few_that_take_long) {
    Program program;
    std::uint64_t i = 0;
    program.run(10'000, 2, [&](std::size_t, bool stays, bool) {
        return (stays ? 100'000u : 1'000'000u) + (++i % 5 == 0 ? 8'000'000u : 0u);
    });
    EXPECT_GT(program.stayed, 18'000u);
}

}  // namespace
}  // namespace hiroba::omp
