// SPDX-License-Identifier: BSD-3-Clause
// Role: runs the programs of steps (step_program.hpp) of a range of seeds, and counts what each
// node did with blocks of its own. Usage: sim_step_programs FIRST LAST [shape=NAME] [tell] [first]
// [try=SEED]
//   shape=NAME  any, wandering, releases, atomics or first_use; else each seed has one of them
//   tell        prints every access
//   first       stops at the first failure, and says how soon it came
// Hundreds of programs in which a node has no block for its own fail: they test too little.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>

#include "sim/dsm/step_program.hpp"
#include "sim/kept_mappings.hpp"
#include "sim/seed_runs.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::uint64_t long_run = 400;  ///< so many programs must have taken part in everything

/// What the programs add to.
struct Tally {
    std::uint64_t steps = 0;
    std::array<dsm::MemoryCounts, step_nodes_max> counts{};
};

void add(Tally& tally, const StepOutcome& outcome) {
    tally.steps += outcome.steps;
    for (std::uint32_t rank = 0; rank < step_nodes_max; ++rank) {
        dsm::MemoryCounts& sum = tally.counts[rank];
        const dsm::MemoryCounts& one = outcome.counts[rank];
        sum.made_exclusive += one.made_exclusive;
        sum.taken_first += one.taken_first;
        sum.taken_whole += one.taken_whole;
        sum.given_up += one.given_up;
        sum.given_up_ahead += one.given_up_ahead;
        sum.held += one.held;
    }
}

/// Prints the sums; false where some node never made a block its own.
bool print_nodes(const Tally& tally) {
    bool took_part = true;
    for (std::uint32_t rank = 0; rank < step_nodes_max; ++rank) {
        const dsm::MemoryCounts& sum = tally.counts[rank];
        std::printf("  node %u: blocks made its own %" PRIu64 ", of these untouched %" PRIu64
                    ", taken whole %" PRIu64 "; given up %" PRIu64 ", ahead %" PRIu64
                    "; held %" PRIu64 "\n",
                    rank, sum.made_exclusive, sum.taken_first, sum.taken_whole, sum.given_up,
                    sum.given_up_ahead, sum.held);
        took_part &= sum.made_exclusive > 0;
    }
    return took_part;
}

int run(int argc, char** argv) {
    SeedRange range;
    bool tell = false;
    std::optional<StepShape> only;
    const auto take_shape = [&](std::string_view name) {
        const auto* const found = std::find(step_shape_names.begin(), step_shape_names.end(), name);
        only = static_cast<StepShape>(found - step_shape_names.begin());
        return found != step_shape_names.end();
    };
    if (!parse_seeds(argc, argv, range,
                     {{"shape=any|wandering|releases|atomics|first_use", take_shape},
                      flag_word("tell", tell)}))
        return 64;
    auto& tally = shared_with_children<Tally>();
    const SeedRuns runs = run_seeds(
        range,
        [&](auto& stacks, std::uint64_t seed) {
            keep_mappings();
            const auto drawn = static_cast<StepShape>(seed % step_shapes_in_turn);
            const StepOutcome outcome = run_step_program(stacks, seed, only.value_or(drawn), tell);
            add(tally, outcome);
            return outcome.failure;
        },
        [&](std::uint64_t seed) {
            std::string words = replay_command("sim_step_programs", seed);
            if (only) words += std::string(" shape=").append(step_shape_names[unsigned(*only)]);
            return words + " tell";
        });
    const bool took_part = print_nodes(tally) || runs.programs < long_run;
    std::printf("%" PRIu64 " programs, %" PRIu64 " failed; %.1f s, %.0f programs/s, %" PRIu64
                " steps\n",
                runs.programs, runs.failures, runs.seconds,
                static_cast<double>(runs.programs) / runs.seconds, tally.steps);
    if (!took_part) std::printf("a node never made a block its own\n");
    tell_first_failure(range, runs);
    return runs.failures > 0 || !took_part ? 1 : 0;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) { return hiroba::sim_test::run(argc, argv); }
