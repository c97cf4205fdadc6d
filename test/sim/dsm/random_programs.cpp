// SPDX-License-Identifier: BSD-3-Clause
// Role: runs the random programs of a range of seeds and counts the rows of the block protocol they
// take. Usage: sim_random_programs FIRST LAST [nodes=N] [steps=N] [rows=N] [racy] [tell] [first]
// [keep]
//   rows=N  fails unless every row was taken N times
//   racy    programs with a race in each phase instead, which must be told
//   tell    prints every step   first  stops at the first failure, and says how soon it came
//   keep    takes the mappings of earlier programs again (kept_mappings.hpp): for many programs
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "sim/dsm/simulated_program.hpp"
#include "sim/kept_mappings.hpp"
#include "sim/seed_runs.hpp"

namespace hiroba::sim_test {
namespace {

/// What the programs add to.
struct Tally {
    std::uint64_t events = 0, virtual_ns = 0;
    dsm::NodeView::RowCounts rows{};
};

std::string run_program(net::sim::FiberStacks& stacks, std::uint64_t seed,
                        const ProgramShape& shape, bool racy, Tally& tally) {
    const ProgramOutcome outcome =
        racy ? run_racy_program(stacks, seed, shape) : run_random_program(stacks, seed, shape);
    tally.events += outcome.events;
    tally.virtual_ns += outcome.virtual_ns;
    for (unsigned state = 0; state < dsm::block_states; ++state) {
        for (unsigned event = 0; event < dsm::block_events; ++event) {
            tally.rows[state][event] += outcome.rows[state][event];
        }
    }
    return outcome.failure;
}

/// Prints the rows; returns how often the rarest was taken.
std::uint64_t print_rows(const Tally& tally) {
    std::uint64_t least = ~std::uint64_t{0};
    for (unsigned state = 0; state < dsm::block_states; ++state) {
        for (unsigned event = 0; event < dsm::block_events; ++event) {
            const auto from = static_cast<dsm::BlockState>(state);
            if (!dsm::find_step(from, static_cast<dsm::BlockEvent>(event))) continue;
            std::printf("  %-15s %-14s %12" PRIu64 "\n", dsm::name_of(from),
                        dsm::name_of(static_cast<dsm::BlockEvent>(event)),
                        tally.rows[state][event]);
            least = std::min(least, tally.rows[state][event]);
        }
    }
    return least;
}

int run(int argc, char** argv) {
    SeedRange range;
    ProgramShape shape;
    std::uint64_t rows_min = 0;
    bool racy = false, keep = false;
    if (!parse_seeds(argc, argv, range,
                     {number_word("nodes=N", shape.nodes, 1), number_word("steps=N", shape.steps),
                      number_word("rows=N", rows_min), flag_word("racy", racy),
                      flag_word("tell", shape.tell), flag_word("keep", keep)}))
        return 64;
    auto& tally = shared_with_children<Tally>();
    const SeedRuns runs = run_seeds(
        range,
        [&](auto& stacks, std::uint64_t seed) {
            if (keep) keep_mappings();
            return run_program(stacks, seed, shape, racy, tally);
        },
        [&](std::uint64_t seed) {
            return replay_command("sim_random_programs", seed) +
                   " nodes=" + std::to_string(shape.nodes) +
                   " steps=" + std::to_string(shape.steps) + " tell";
        });
    const std::uint64_t least = print_rows(tally);
    std::printf("%" PRIu64 " programs, %" PRIu64 " failed; %.1f s, %.0f programs/s, %" PRIu64
                " events, %.3f s of virtual time; rarest row %" PRIu64 "\n",
                runs.programs, runs.failures, runs.seconds,
                static_cast<double>(runs.programs) / runs.seconds, tally.events,
                static_cast<double>(tally.virtual_ns) * 1e-9, least);
    tell_first_failure(range, runs);
    return runs.failures > 0 || least < rows_min ? 1 : 0;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) { return hiroba::sim_test::run(argc, argv); }
