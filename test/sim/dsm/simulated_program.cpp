// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/simulated_program.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace hiroba::sim_test {

namespace {

using net::sim::Scheduler;

ClusterOptions draw_options(Random& random, std::uint64_t seed, const ProgramShape& shape) {
    const auto one_of = [&](auto... choices) {
        const std::uint64_t all[] = {static_cast<std::uint64_t>(choices)...};
        return all[random.below(sizeof...(choices))];
    };
    ClusterOptions options;
    options.nodes = shape.nodes;
    const DrawnMemory drawn = draw_memory(random);
    options.threads_of_first = drawn.threads_of_first;
    options.memory = drawn.memory;
    options.engine.as_mprotect = random.happens(50);
    options.engine.evict = static_cast<std::uint32_t>(one_of(0, 3, 10));
    options.engine.slow_calls = static_cast<std::uint32_t>(one_of(0, 20, 50));
    options.engine.stray_reports = static_cast<std::uint32_t>(one_of(0, 20));
    // By the seed alone, so that the other draws are what they were before.
    options.engine.quiet = seed % 2 == 0 ? 80 : 0;
    options.memory.vain_max = static_cast<std::uint8_t>(1 + seed / 2 % 2 * 3);
    options.memory.join = seed / 4 % 2 == 0;
    options.memory.follow_all = seed / 2 % 3 == 0;
    options.memory.late_twins = seed / 32 % 2;
    options.memory.sealed_blocks = 1 + seed / 64 % 3;
    options.memory.row_min = seed / 16 % 2 == 0 ? 1 : 4;
    if (seed / 8 % 2 == 0) options.memory.hand_over = dsm::MemoryOptions::HandOver::all;
    options.memory.asks_every = seed / 128 % 2 == 0 ? dsm::MemoryOptions::never_asks : 1 + seed % 3;
    options.scheduling.seed = seed;
    options.scheduling.turn_max_ns = one_of(200, 1000, 5000);
    options.scheduling.limit_ns = 300'000'000;
    options.wire.latency_ns = one_of(100, 1500);
    options.wire.jitter_ns = one_of(0, 500, 10'000);
    options.wire.loss = static_cast<std::uint32_t>(one_of(0, 0, 5, 15));
    options.wire.duplicate = static_cast<std::uint32_t>(one_of(0, 10));
    options.wire.reorder = static_cast<std::uint32_t>(one_of(0, 10, 30));
    // The longer lets whole critical sections of others by while one block is fetched.
    options.wire.reorder_ns = one_of(20'000, 300'000);
    options.wire.slow_calls = static_cast<std::uint32_t>(one_of(0, 10, 30));
    if (random.happens(20)) options.wire.calls = net::sim::Calls::one_thread;
    return options;
}

void note_race(void* races, std::uintptr_t address, std::uint32_t bytes, NodeId self,
               NodeId other) noexcept {
    char text[80];
    std::snprintf(text, sizeof text, " %u bytes at 0x%lx by nodes %u and %u, seen by the former;",
                  bytes, address, self.value, other.value);
    *static_cast<std::string*>(races) += text;
}

}  // namespace

ProgramOutcome run_random_program(net::sim::FiberStacks& stacks, std::uint64_t seed,
                                  const ProgramShape& shape) {
    Random random{seed * 2 + 1};
    Cluster cluster{stacks, draw_options(random, seed, shape)};
    RandomProgram::Oracle oracle{};
    ProgramOutcome outcome;
    const auto failed = [&](const std::string& what) {
        if (outcome.failure.empty()) outcome.failure = what;
        cluster.scheduler().stop();
    };
    RandomProgram program{seed,          shape,  random, cluster.options().threads_of_first,
                          cluster.map(), oracle, failed};
    std::string races;
    const Scheduler::Outcome ended = cluster.run([&](std::uint32_t thread, ClusterNode& node) {
        node.memory().on_race(&note_race, &races);
        program.live(thread, node);
    });
    if (outcome.failure.empty() && ended != Scheduler::Outcome::ended) {
        outcome.failure = outcome_name(ended);
    }
    if (outcome.failure.empty() && !races.empty()) {
        outcome.failure = "races reported of a program without any:" + races;
    }
    outcome.rows = cluster.rows();
    outcome.virtual_ns = cluster.scheduler().time_ns();
    outcome.events = cluster.scheduler().events();
    outcome.trace_hash = cluster.scheduler().trace_hash();
    return outcome;
}

// Which threads write the raced block in a phase. In every second program two of different nodes
// alone: the one meeting of their versions must tell of them, where among many another one would.
// A third node's writes to other variables of the block would make it stale again and again, and
// such a race may stay silent, once in some thousand times.
std::vector<bool> draw_writers(const Cluster& cluster, std::uint64_t seed, std::uint32_t phase) {
    const std::uint32_t threads = cluster.threads();
    std::vector<bool> writes(threads, seed % 2 == 0);
    if (seed % 2 == 0 || cluster.options().nodes == 1) return writes;
    Random random{seed * 8 + phase};
    const auto any = [&] { return static_cast<std::uint32_t>(random.below(threads)); };
    const std::uint32_t one = any();
    std::uint32_t other = any();
    while (cluster.node_of(other) == cluster.node_of(one)) other = any();
    writes[one] = writes[other] = true;
    return writes;
}

// One variable, which every thread writes in every phase, no two the same value, and what else
// makes versions meet in different orders. No thread reads it: that might have been a flag.
ProgramOutcome run_racy_program(net::sim::FiberStacks& stacks, std::uint64_t seed,
                                const ProgramShape& shape) {
    constexpr std::uint32_t phases = 3;
    Random random{seed * 2 + 1};
    ClusterOptions options = draw_options(random, seed, shape);
    // A block that is made stale again and again between the fetch for a write and the write is
    // seen as read in between: such races stay silent (docs/layers/dsm.md).
    options.memory.notices_max = std::max<std::size_t>(options.memory.notices_max, 64);
    // Writes into exclusive blocks are not noted: as with HIROBA_RACE=all, there are none.
    options.memory.exclusive = false;
    Cluster cluster{stacks, options};
    const std::uintptr_t raced = cluster.map().heap_arena(NodeId{0}).address;
    std::array<std::string, phases> races;
    ProgramOutcome outcome;
    struct Heard {
        std::array<std::string, phases>& races;
        std::uint32_t phase;
    };
    std::vector<Heard> heard(shape.nodes, Heard{races, 0});
    const Scheduler::Outcome ended = cluster.run([&](std::uint32_t thread, ClusterNode& node) {
        Heard& here = heard[node.self().value];
        Random own{seed * 64 + thread};
        node.memory().on_race(
            [](void* at, std::uintptr_t address, std::uint32_t bytes, NodeId self,
               NodeId other) noexcept {
                auto& told = *static_cast<Heard*>(at);
                note_race(&told.races[told.phase], address, bytes, self, other);
            },
            &here);
        const std::uint32_t threads = cluster.threads_of(node.self().value);
        for (std::uint32_t phase = 0; phase < phases; ++phase) {
            here.phase = phase;
            const bool writes = draw_writers(cluster, seed, phase)[thread];
            for (std::uint32_t i = 0; i < 3; ++i) {
                if (own.happens(40)) {
                    if (shape.tell)
                        std::printf("%lu ns: node %u publishes in phase %u\n", node.time_ns(),
                                    node.self().value, phase);
                    node.memory().flush_aside();
                }
                if (i != 1 || !writes) continue;
                if (shape.tell)
                    std::printf("%lu ns: node %u writes in phase %u\n", node.time_ns(),
                                node.self().value, phase);
                node.store(raced, 4, (phase * 16 + thread + 1) * 0x0101'0101u);
            }
            // After the race here: an acquire before the release, and a fault on top of it. Of a
            // node with more threads it would order the others' writes, too.
            const bool locks = threads == 1 && own.happens(60);
            if (locks && (writes || seed % 2 == 0)) {
                node.locks().lock(0);
                node.store(raced + 64 + 8 * thread, 8, phase + 1);
                node.locks().unlock(0);
            }
            node.barrier(threads);
        }
    });
    if (ended != Scheduler::Outcome::ended) outcome.failure = outcome_name(ended);
    for (std::uint32_t phase = 0; outcome.failure.empty() && phase < phases; ++phase)
        if (races[phase].empty())
            outcome.failure = "no race told in phase " + std::to_string(phase);
    outcome.rows = cluster.rows();
    outcome.virtual_ns = cluster.scheduler().time_ns();
    outcome.events = cluster.scheduler().events();
    outcome.trace_hash = cluster.scheduler().trace_hash();
    return outcome;
}

}  // namespace hiroba::sim_test
