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
    std::uint64_t least_ns = 0;  ///< said of each region; 0: nothing is
    bool before = false;

    /// Runs `steps` steps of regions, one for each function; took(function, stays, moved) ns each,
    /// `moved`: the region before was elsewhere.
    template <class Took>
    void run(std::uint64_t steps, std::size_t functions, Took&& took, std::size_t first = 0) {
        for (std::uint64_t step = 0; step < steps; ++step) {
            for (std::size_t function = 0; function < functions; ++function) {
                const bool stays =
                    regions.begin(codes + (first + function) * 64, 2, now_ns, least_ns);
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

constexpr std::uint64_t ms = 1'000'000;

/// Threads compute for `computes_ns` where regions are spread, and then wait.
template <class Took>
std::uint64_t time_of(std::uint64_t steps, std::size_t functions, std::uint64_t least_ns,
                      Took&& took, Program&& program = {}) {
    program.least_ns = least_ns;
    program.run(steps, functions, took);
    return program.now_ns;
}

// Sweeps in both directions: eleven times as long where they are spread, and thirty in all.
TEST(RegionsTogether, stay_soon_where_threads_wait) {
    const std::uint64_t took_ns = time_of(15, 2, 10 * ms, [](std::size_t, bool stays, bool moved) {
        return (stays ? 10 * ms : 110 * ms) + (moved ? 15 * ms : 0u);
    });
    EXPECT_LT(took_ns, 30 * 10 * ms + 700 * ms);
}

// As many seconds as the former ms.
TEST(RegionsTogether, stay_at_once_where_that_saves_seconds) {
    const std::uint64_t took_ns =
        time_of(15, 2, 1000 * ms, [](std::size_t, bool stays, bool moved) {
            return (stays ? 1000 * ms : 11'000 * ms) + (moved ? 1500 * ms : 0u);
        });
    EXPECT_LT(took_ns, 2 * 30 * 1000 * ms);
}

// A long start that computes hides them: they are tried when they have taken an eighth of it.
TEST(RegionsTogether, are_tried_soon_behind_a_long_start_where_they_wait) {
    Program program;
    EXPECT_FALSE(program.regions.begin(codes, 2, 0));
    EXPECT_FALSE(program.regions.begin(codes + 64, 2, 6000 * ms, 6000 * ms));
    EXPECT_FALSE(program.regions.begin(codes + 64, 2, 6800 * ms, 150 * ms));
    EXPECT_FALSE(program.regions.begin(codes + 64, 2, 7600 * ms, 150 * ms));
    EXPECT_TRUE(program.regions.begin(codes + 64, 2, 8400 * ms, 150 * ms));
}

// There is one that begins, and one that is the program: only what they wait for can tell.
TEST(RegionsTogether, stay_where_those_before_have_waited) {
    Program program;
    EXPECT_FALSE(program.regions.begin(codes, 2, 0));
    EXPECT_TRUE(program.regions.begin(codes + 64, 2, 1400 * ms, 150 * ms));
}

TEST(RegionsTogether, are_spread_where_those_before_have_computed) {
    Program program;
    EXPECT_FALSE(program.regions.begin(codes, 2, 0));
    EXPECT_FALSE(program.regions.begin(codes + 64, 2, 1400 * ms, 1000 * ms));
}

// What a start moves is no reason.
TEST(RegionsTogether, are_spread_where_those_before_have_waited_for_a_moment) {
    Program program;
    EXPECT_FALSE(program.regions.begin(codes, 2, 0));
    EXPECT_FALSE(program.regions.begin(codes + 64, 2, 900 * ms, 50 * ms));
}

// Where threads compute, one node has nothing to save: a program of some regions is not tried.
TEST(RegionsTogether, that_compute_are_not_tried_soon) {
    Program program;
    program.least_ns = 95 * ms;
    program.run(60, 1, [](std::size_t, bool stays, bool) { return stays ? 100 * ms : 50 * ms; });
    EXPECT_EQ(program.stayed, 0u);
}

// A program that is faster spread, but for its first region, which touches all memory.
TEST(RegionsTogether, are_spread_again_where_they_waited_at_first_only) {
    Program program;
    program.least_ns = 38 * ms;
    bool first = true;
    program.run(1000, 2, [&](std::size_t, bool stays, bool moved) {
        const std::uint64_t moves_ns = first ? 2000 * ms : moved ? 300 * ms : 0u;
        first = false;
        return (stays ? 40 * ms : 20 * ms) + moves_ns;
    });
    // What it does at first, and three times as long at half the pace.
    EXPECT_LT(program.now_ns, 2000 * 20 * ms + 2000 * ms + 3000 * ms + 1500 * ms);
}

// Where they do wait, that look takes no longer than one region.
TEST(RegionsTogether, are_tried_once_more_where_they_waited_when_new) {
    const std::uint64_t took_ns =
        time_of(2000, 3, 100 * ms, [](std::size_t, bool stays, bool moved) {
            return (stays ? 100 * ms : 2000 * ms) + (moved ? 50 * ms : 0u);
        });
    EXPECT_LT(took_ns, 6000 * 100 * ms + 2000 * ms + 2 * 2000 * ms + 6000 * 100 * ms / 20);
}

// Seconds each, and a third of it saved by staying.
TEST(RegionsTogether, that_are_long_are_tried_where_they_are_known_to_wait) {
    Program program;
    program.least_ns = 1500 * ms;
    program.run(40, 1, [](std::size_t, bool stays, bool) { return stays ? 1500 * ms : 2100 * ms; });
    EXPECT_GT(program.stayed, 20u);
}

// Threads wait for a third of the time, for each other and not for data: staying saves nothing.
TEST(RegionsTogether, cost_little_where_waits_are_none_of_the_nodes) {
    const std::uint64_t took_ns = time_of(10'000, 3, 6 * ms, [](std::size_t, bool, bool moved) {
        return 10 * ms + (moved ? 30 * ms : 0u);
    });
    EXPECT_LT(took_ns, 30'000 * 10 * ms * 21 / 20);
}

// Whatever it is that they do: at most a tenth more than the better way, but for a first second
// and what some first regions take.
TEST(RegionsTogether, lose_a_tenth_at_most) {
    for (const std::uint64_t spread_ns : {2 * ms, 10 * ms, 40 * ms, 200 * ms}) {
        for (const std::uint64_t here_ns : {1 * ms, 10 * ms, 50 * ms, 400 * ms}) {
            for (const bool says : {false, true}) {
                for (const std::size_t functions : {1u, 2u, 7u}) {
                    const std::uint64_t better_ns = std::min(spread_ns, here_ns);
                    const std::uint64_t steps = 20'000 * ms / better_ns / functions;
                    const std::uint64_t took_ns =
                        time_of(steps, functions, says ? here_ns * 9 / 10 : 0,
                                [&](std::size_t, bool stays, bool moved) {
                                    return (stays ? here_ns : spread_ns) + (moved ? 5 * ms : 0u);
                                });
                    const std::uint64_t best_ns = steps * functions * better_ns;
                    const std::uint64_t firsts_ns = 4 * functions * (spread_ns + here_ns);
                    EXPECT_LT(took_ns, best_ns * 11 / 10 + 1000 * ms + firsts_ns)
                        << spread_ns / ms << " ms spread, " << here_ns / ms << " here, "
                        << functions << " functions" << (says ? ", known" : "");
                }
            }
        }
    }
}

}  // namespace
}  // namespace hiroba::omp
