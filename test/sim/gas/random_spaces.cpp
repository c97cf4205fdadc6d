// SPDX-License-Identifier: BSD-3-Clause
// Role: runs the random programs of a range of seeds on relocatable spaces of simulated nodes.
// Usage: sim_random_spaces FIRST LAST [steps=N] [crash] [wide] [tell] [first]
//   crash  one node dies on the way   first  stops at the first failure, and says how soon it came
//   wide   65 to 128 nodes
#include <cstdio>
#include <string>

#include "sim/gas/random_space.hpp"
#include "sim/seed_runs.hpp"

namespace hiroba::sim_test {
namespace {

/// What the programs add to.
struct Tally {
    std::uint64_t accesses = 0, relocations = 0, misses = 0, lost = 0;
};

int run(int argc, char** argv) {
    SeedRange range;
    // A program in which a node dies leaves half a MiB behind.
    range.programs_per_process = 5000;
    RandomSpace shape;
    if (!parse_seeds(argc, argv, range,
                     {number_word("steps=N", shape.steps), flag_word("crash", shape.crash),
                      flag_word("wide", shape.wide), flag_word("tell", shape.tell)}))
        return 64;
    if (shape.wide) range.programs_per_process = 20;  // each has gigabytes of addresses
    auto& tally = shared_with_children<Tally>();
    const SeedRuns runs = run_seeds(
        range,
        [&](auto& stacks, std::uint64_t seed) {
            shape.seed = seed;
            const RandomSpaceRun one = run_random_space(stacks, shape);
            tally.accesses += one.accesses;
            tally.relocations += one.relocations;
            tally.misses += one.misses;
            tally.lost += one.lost;
            return one.fault;
        },
        [&](std::uint64_t seed) {
            return replay_command("sim_random_spaces", seed) +
                   " steps=" + std::to_string(shape.steps) + (shape.crash ? " crash" : "") +
                   (shape.wide ? " wide" : "") + " tell";
        });
    std::printf(
        "%lu programs, %lu failed; %.1f s, %lu accesses, %lu relocations, %lu misses, %lu "
        "ended by a crash\n",
        runs.programs, runs.failures, runs.seconds, tally.accesses, tally.relocations, tally.misses,
        tally.lost);
    tell_first_failure(range, runs);
    return runs.failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) { return hiroba::sim_test::run(argc, argv); }
