// SPDX-License-Identifier: BSD-3-Clause
// Role: explores all orders of small programs on 2 and 3 nodes that come from holding up at most
// `delays` steps (a thread's turn, a packet), each for one of two times, and checks the invariants
// before every step. Usage: sim_explore DELAYS [scenario]
//
// Without delays the order is fixed: everything takes its time. A delayed step lets others by:
// for `short_ns` about one message, for `long_ns` a whole critical section of another node. All
// sets of at most DELAYS (step, time) pairs are run.
// Source: Emmi, Qadeer, Rakamaric, "Delay-bounded scheduling", POPL 2011.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/address_hint.hpp"
#include "base/clock.hpp"
#include "sim/dsm/invariants.hpp"
#include "sim/kept_mappings.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::uint64_t short_ns = 1'500, long_ns = 40'000;

struct Deviation {
    std::uint64_t step;
    std::uint64_t ns;
};

/// One run: counts steps, delays those of the plan, checks in between.
class Plan final : public net::sim::Delays {
public:
    explicit Plan(const std::vector<Deviation>& deviations) : deviations_(deviations) {}
    std::uint64_t delay_ns(std::uint64_t) override {
        if (check == nullptr) return 0;
        if (broken.empty()) broken = check->broken();
        const std::uint64_t step = steps++;
        for (const Deviation& deviation : deviations_) {
            if (deviation.step == step) return deviation.ns;
        }
        return 0;
    }
    std::uint64_t steps = 0;
    Invariants* check = nullptr;  ///< while the program runs
    std::string broken;

private:
    const std::vector<Deviation>& deviations_;
};

/// What the scenarios are made of.
struct World {
    Cluster& cluster;
    std::uintptr_t words[2];  ///< one in each block
    std::uint64_t right[2] = {};
    std::string failure;

    void see(std::uint32_t thread, ClusterNode& node, int which) {
        const std::uint64_t saw = node.load(words[which], 8);
        if (saw == right[which] || !failure.empty()) return;
        failure = "thread " + std::to_string(thread) + " sees " + std::to_string(saw) +
                  " in word " + std::to_string(which) + ", should be " +
                  std::to_string(right[which]);
    }
    void add(ClusterNode& node, int which) {
        right[which] += 1;
        node.store(words[which], 8, right[which]);
    }
    void locked_add(std::uint32_t thread, ClusterNode& node, int which) {
        node.locks().lock(words[which]);
        see(thread, node, which);
        add(node, which);
        node.locks().unlock(words[which]);
    }
    void atomic_add(std::uint32_t thread, ClusterNode& node, int which) {
        auto* const address = reinterpret_cast<void*>(words[which]);
        node.memory().enter_atomic(address, 8);
        see(thread, node, which);
        add(node, which);
        node.memory().leave_atomic(address, 8);
    }
    void meet(ClusterNode& node) { node.barrier(cluster.threads_of(node.endpoint().self().value)); }
};

struct Scenario {
    const char* name;
    std::uint32_t nodes, threads_of_first, notices_max;
    bool as_mprotect;
    void (*live)(World& world, std::uint32_t thread, ClusterNode& node);
};

constexpr Scenario scenarios[] = {
    {"lock", 2, 1, 4, true,
     [](World& world, std::uint32_t thread, ClusterNode& node) {
         for (int i = 0; i < 2; ++i) world.locked_add(thread, node, 0);
         world.meet(node);
         world.see(thread, node, 0);
     }},
    {"atomic", 2, 1, 4, false,
     [](World& world, std::uint32_t thread, ClusterNode& node) {
         for (int i = 0; i < 2; ++i) world.atomic_add(thread, node, 0);
         world.meet(node);
         world.see(thread, node, 0);
     }},
    {"two_blocks", 2, 1, 1, true,
     [](World& world, std::uint32_t thread, ClusterNode& node) {
         world.locked_add(thread, node, static_cast<int>(thread % 2));
         world.locked_add(thread, node, static_cast<int>((thread + 1) % 2));
         world.meet(node);
         world.see(thread, node, 0);
         world.see(thread, node, 1);
     }},
    {"two_threads", 2, 2, 1, false,
     [](World& world, std::uint32_t thread, ClusterNode& node) {
         world.locked_add(thread, node, static_cast<int>(thread % 2));
         world.meet(node);
         world.atomic_add(thread, node, 1);
         world.meet(node);
         world.see(thread, node, 0);
         world.see(thread, node, 1);
     }},
    {"three_nodes", 3, 1, 1, true,
     [](World& world, std::uint32_t thread, ClusterNode& node) {
         world.locked_add(thread, node, 0);
         world.meet(node);
         world.see(thread, node, 0);
     }},
};

struct Tally {
    std::uint64_t runs = 0, steps = 0, checks = 0;
    std::string failure;
};

std::uint64_t run_once(net::sim::FiberStacks& stacks, const Scenario& scenario,
                       const std::vector<Deviation>& deviations, Tally& tally) {
    Plan plan{deviations};
    ClusterOptions options;
    options.nodes = scenario.nodes;
    options.threads_of_first = scenario.threads_of_first;
    options.memory.notices_max = scenario.notices_max;
    options.memory.carried_max = 320;
    options.memory.lease = 2;
    options.engine.as_mprotect = scenario.as_mprotect;
    options.engine.slow_calls = 100;
    options.scheduling = {.seed = 1, .turn_min_ns = 100, .turn_max_ns = 100};
    options.scheduling.limit_ns = 50'000'000;
    options.scheduling.delays = &plan;
    options.wire.latency_ns = 500;
    options.wire.jitter_ns = 0;
    reset_address_hints();  // the mappings of the run before are there
    Cluster cluster{stacks, options};
    const std::uintptr_t first = cluster.map().heap_arena(NodeId{0}).address;
    const std::uintptr_t second = cluster.map().heap_arena(NodeId{1}).address;
    World world{cluster, {first, second}, {}, {}};
    Invariants invariants{cluster, {first, second}};
    std::uint32_t living = cluster.threads();
    const auto outcome = cluster.run([&](std::uint32_t thread, ClusterNode& node) {
        plan.check = &invariants;
        scenario.live(world, thread, node);
        if (--living == 0) plan.check = nullptr;
    });
    ++tally.runs;
    tally.steps += plan.steps;
    tally.checks += invariants.checks();
    if (!world.failure.empty()) tally.failure = world.failure;
    if (!plan.broken.empty()) tally.failure = plan.broken;
    if (outcome != net::sim::Scheduler::Outcome::ended) tally.failure = outcome_name(outcome);
    return plan.steps;
}

/// Runs every plan that begins with `deviations`.
void explore(net::sim::FiberStacks& stacks, const Scenario& scenario,
             std::vector<Deviation>& deviations, std::size_t most, Tally& tally) {
    const std::uint64_t steps = run_once(stacks, scenario, deviations, tally);
    if (!tally.failure.empty()) {
        std::printf("%s, %lu delays", scenario.name, deviations.size());
        for (const Deviation& d : deviations) std::printf(", step %lu by %lu ns", d.step, d.ns);
        std::printf(": %s\n", tally.failure.c_str());
        return;
    }
    if (deviations.size() == most) return;
    const std::uint64_t from = deviations.empty() ? 0 : deviations.back().step + 1;
    for (std::uint64_t step = from; step < steps; ++step) {
        for (const std::uint64_t ns : {short_ns, long_ns}) {
            deviations.push_back({step, ns});
            explore(stacks, scenario, deviations, most, tally);
            deviations.pop_back();
            if (!tally.failure.empty()) return;
        }
    }
}

int run(int argc, char** argv) {
    const std::size_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
    const std::string_view only = argc > 2 ? argv[2] : "";
    if (argc < 2 || argc > 3) {
        std::fprintf(stderr, "usage: sim_explore DELAYS [scenario]\n");
        return 64;
    }
    keep_mappings();
    net::sim::FiberStacks stacks;
    bool right = true, found = false;
    for (const Scenario& scenario : scenarios) {
        if (!only.empty() && only != scenario.name) continue;
        found = true;
        Tally tally;
        std::vector<Deviation> deviations;
        const std::uint64_t start_ns = now_ns();
        explore(stacks, scenario, deviations, most, tally);
        std::printf("%-12s %9" PRIu64 " orders, %11" PRIu64 " steps, %11" PRIu64
                    " checks of blocks, %7.1f s: %s\n",
                    scenario.name, tally.runs, tally.steps, tally.checks,
                    static_cast<double>(now_ns() - start_ns) * 1e-9,
                    tally.failure.empty() ? "right" : "WRONG");
        std::fflush(stdout);
        right &= tally.failure.empty();
    }
    if (!found) std::fprintf(stderr, "no scenario %s\n", argv[2]);
    return !found ? 64 : right ? 0 : 1;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) { return hiroba::sim_test::run(argc, argv); }
