// SPDX-License-Identifier: BSD-3-Clause
// Role: all orders of all steps of small programs on 2 and 3 nodes with 1 and 2 blocks, the
// invariants checked in every state. Usage: sim_explore_all [states=N] [planted|twice]
// [scenario...]
//   states=N  gives a scenario up after so many states   planted  succeeds if one goes wrong
//   twice     also with every run from its beginning, without a checkpoint: both must find the same
//
// A step is an access to memory that another node, or another thread of the node, may use: a load,
// a store or a compare-and-swap of a word, a copy of a block, a call of the fault engine, a
// synchronization of the program. No other thread sees what lies between two steps.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/address_hint.hpp"
#include "base/clock.hpp"
#include "sim/dsm/checkpoint.hpp"
#include "sim/dsm/scenarios.hpp"
#include "sim/dsm/scenarios_of_own_blocks.hpp"
#include "sim/dsm/small_world.hpp"
#include "sim/dsm/state_graph.hpp"

namespace hiroba::sim_test {
namespace {

struct Options {
    std::uint64_t states_max = ~std::uint64_t{0};
    bool planted = false, twice = false;
};

std::vector<Scenario> all_scenarios() {
    std::vector<Scenario> all{std::begin(scenarios), std::end(scenarios)};
    all.insert(all.end(), std::begin(scenarios_of_own_blocks), std::end(scenarios_of_own_blocks));
    return all;
}

ClusterOptions options_of(const Scenario& scenario, StateGraph& graph) {
    ClusterOptions options;
    options.nodes = scenario.nodes;
    options.threads_of_first = scenario.threads_of_first;
    options.with_locks = false;
    options.with_payers = scenario.pays;
    if (!scenario.pays || scenario.relaxed)
        options.memory.atomics = dsm::MemoryOptions::Atomics::relaxed;
    options.memory.exclusive = scenario.exclusive;
    options.memory.join = scenario.joins();
    options.memory.hand_over = scenario.hand_over();
    options.memory.asks_every = scenario.asks() ? 1 : dsm::MemoryOptions::never_asks;
    options.memory.notices_max = scenario.notices_max;
    options.memory.carried_max = scenario.carries() ? 320 : 0;  // two lines
    options.memory.row_min = scenario.row_min();
    options.memory.open_at_once = scenario.opens();
    using Race = dsm::MemoryOptions::Race;
    options.memory.race = scenario.races == Races::off ? Race::off : Race::report;
    options.memory.lease = 2;
    options.memory.lock_hops = scenario.lock_hops;
    options.engine.as_mprotect = scenario.as_mprotect;
    options.engine.forgotten = scenario.as_mprotect ? 0 : 100;
    options.engine.steps = true;
    options.scheduling.chooser = &graph;
    options.scheduling.limit_ns = 50'000'000;
    options.wire.steps = true;
    return options;
}

std::vector<std::uintptr_t> blocks_of(const Scenario& scenario, const dsm::AddressMap& map) {
    std::vector<std::uintptr_t> blocks{map.heap_arena(NodeId{0}).address};
    if (scenario.second == Second::heap_twice) {
        // Apart: blocks in a row that are written together are one notice.
        const std::uintptr_t heap = blocks.front();
        blocks = {heap + page_bytes, heap, heap + 2 * page_bytes};
    }
    if (scenario.second == Second::heap) blocks.push_back(map.heap_arena(NodeId{1}).address);
    if (scenario.second == Second::stack) {
        // The second page: the first guards the stack.
        blocks.push_back(map.stack_slice(map.shape().threads_per_node).address + page_bytes);
    }
    return blocks;
}

constexpr std::size_t stacks_of_run = 16;

/// Has `stacks` hold what a run needs, so that its books do not grow inside one.
void fill(net::sim::FiberStacks& stacks) {
    std::vector<std::byte*> taken(stacks_of_run);
    for (std::byte*& stack : taken) stack = stacks.take();
    for (std::byte* const stack : taken) stacks.give(stack);
}

/// @param checkpoint  of which this is the body; or nullptr, then it makes one run and returns
void run_once(const Scenario& scenario, StateGraph& graph, Checkpoint* checkpoint) {
    reset_address_hints();
    const RunArena arena;
    net::sim::FiberStacks stacks;
    fill(stacks);
    SmallWorld* here = nullptr;
    ClusterOptions options = options_of(scenario, graph);
    options.payer_comes = [&](ClusterNode& node) { here->come(node); };
    Cluster cluster{stacks, options};
    SmallWorld world{cluster, blocks_of(scenario, cluster.map())};
    here = &world;
    StateGraph::Questions questions{
        [&] { return world.digest(); }, [&] { return world.broken(); }, {}, {}, {}};
    if (checkpoint != nullptr) {
        questions.first_choice = [=] { checkpoint->mark(); };
        questions.remember = [=] { checkpoint->remember(); };
        questions.forget = [=] { checkpoint->forget(); };
    }
    graph.ask(std::move(questions));
    const auto outcome = cluster.run([&](std::uint32_t thread, ClusterNode& node) {
        world.come(node);
        scenario.live(world, thread, node);
    });
    std::string failure = world.failure();
    const bool ended = outcome == net::sim::Scheduler::Outcome::ended;
    if (failure.empty() && scenario.races == Races::none && world.raced())
        failure = "a race told of writes that are in order";
    if (failure.empty() && ended && scenario.races == Races::some && !world.raced())
        failure = "a race not told";
    graph.end_run(outcome, failure);
    if (checkpoint == nullptr) return;
    const OutsideRunArena here_no_more;
    checkpoint->leave();
}

/// Makes runs until nothing is open.
void explore_with(const Scenario& scenario, StateGraph& graph, bool with_checkpoint) {
    std::optional<Checkpoint> checkpoint;
    if (with_checkpoint) checkpoint.emplace([&] { run_once(scenario, graph, &*checkpoint); });
    while (!graph.is_done()) {
        graph.begin_run();
        with_checkpoint ? checkpoint->go() : run_once(scenario, graph, nullptr);
    }
}

/// Whether all is right.
bool explore(const Scenario& scenario, const Options& options) {
    StateGraph graph{options.states_max};
    const std::uint64_t start_ns = now_ns();
    explore_with(scenario, graph, true);
    std::string verdict = graph.is_complete() ? "all orders right" : "given up, right so far";
    const std::uint64_t hanging = graph.is_complete() ? graph.find_hanging_states() : 0;
    if (hanging > 0) verdict = "WRONG: " + std::to_string(hanging) + " states never end";
    if (!graph.failure().empty()) verdict = "WRONG: " + graph.failure();
    if (options.twice) {
        StateGraph anew{options.states_max};
        explore_with(scenario, anew, false);
        if (anew.failure() != graph.failure() || anew.runs() != graph.runs() ||
            anew.states() != graph.states() || anew.steps() != graph.steps())
            verdict = "WRONG: not what runs from the beginning find, " +
                      std::to_string(anew.runs()) + " runs, " + std::to_string(anew.states()) +
                      " states";
    }
    std::printf("%-22s %u nodes, %u threads: %9" PRIu64 " states, %9" PRIu64
                " steps, longest way %4zu, %9" PRIu64 " runs, %6.1f s: %s\n",
                scenario.name, scenario.nodes, scenario.nodes - 1 + scenario.threads_of_first,
                graph.states(), graph.steps(), graph.longest(), graph.runs(),
                static_cast<double>(now_ns() - start_ns) * 1e-9, verdict.c_str());
    if (hanging > 0 || !graph.failure().empty()) std::printf("  way:%s\n", graph.way().c_str());
    std::fflush(stdout);
    return !verdict.starts_with("WRONG");
}

/// As explore(), in a process of its own: a broken assertion of the engine is a verdict too.
bool explore_apart(const Scenario& scenario, const Options& options) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        const bool right = explore(scenario, options);
        std::fflush(nullptr);
        _exit(right ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) std::abort();
    if (WIFSIGNALED(status)) {
        std::printf("%-22s WRONG: the engine stopped itself\n", scenario.name);
    }
    return status == 0;
}

int run(int argc, char** argv) {
    // Mappings of the heap would lie where a later run's are to lie again.
    mallopt(M_MMAP_MAX, 0);
    Options options;
    std::vector<std::string_view> only;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word.starts_with("states=")) {
            options.states_max = std::strtoull(argv[i] + 7, nullptr, 10);
        } else if (word == "planted") {
            options.planted = true;
        } else if (word == "twice") {
            options.twice = true;
        } else {
            only.push_back(word);
        }
    }
    bool right = true;
    std::size_t found = 0;
    for (const Scenario& scenario : all_scenarios()) {
        if (!only.empty() && std::find(only.begin(), only.end(), scenario.name) == only.end()) {
            continue;
        }
        ++found;
        right &= explore_apart(scenario, options);
        if (options.planted && !right) return 0;
    }
    if (found == 0 || found < only.size()) {
        std::fprintf(stderr,
                     "usage: sim_explore_all [states=N] [planted|twice] [scenario...]; there are");
        for (const Scenario& scenario : all_scenarios()) std::fprintf(stderr, " %s", scenario.name);
        std::fprintf(stderr, "\n");
        return 64;
    }
    return right == options.planted;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) { return hiroba::sim_test::run(argc, argv); }
