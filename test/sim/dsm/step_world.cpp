// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/step_world.hpp"

#include <cinttypes>
#include <cstdio>

namespace hiroba::sim_test {

using HandOver = dsm::MemoryOptions::HandOver;

ClusterOptions StepWorld::draw_options() {
    const auto one_of = [&](auto... choices) {
        const std::uint64_t all[] = {static_cast<std::uint64_t>(choices)...};
        return static_cast<std::uint32_t>(all[random.below(sizeof...(choices))]);
    };
    const bool is_any = shape == StepShape::any;
    ClusterOptions options;
    options.nodes = one_of(2, 2, 3);
    options.threads_of_first = (shape == StepShape::releases || shape == StepShape::atomics ||
                                shape == StepShape::counters)
                                   ? one_of(2, 2, 3)
                                   : one_of(1, 2, 3);
    options.with_locks = false;
    options.memory.exclusive = !is_any || random.happens(95);
    options.memory.join = is_any && random.happens(15);
    options.memory.hand_over = !is_any || random.happens(60) ? HandOver::all : HandOver::wandering;
    options.memory.notices_max = one_of(1, 2, 4, 64);
    options.memory.row_min = static_cast<std::uint16_t>(one_of(1, 1, 4, 60'000));
    options.memory.open_at_once = shape == StepShape::counters && seed % 4 != 0;
    if (shape == StepShape::counters) options.memory.row_min = 1;
    options.memory.race = dsm::MemoryOptions::Race::off;
    options.memory.lease = one_of(2, 10);
    options.memory.vain_max = static_cast<std::uint8_t>(one_of(1, 4));
    options.memory.follow_all = seed / 64 % 3 == 0;
    options.memory.asks_every = seed / 32 % 2 == 0 ? dsm::MemoryOptions::never_asks : 1 + seed % 3;
    options.engine.as_mprotect = random.happens(40);
    options.engine.forgotten = options.engine.as_mprotect ? 0 : one_of(0, 100);
    options.engine.evict = random.happens(70) ? 0 : 5;
    options.engine.quiet = random.happens(70) ? 0 : 60;
    options.engine.stray_reports = random.happens(70) ? 0 : 20;
    options.engine.steps = true;
    options.wire.steps = true;
    options.scheduling.seed = seed;
    options.scheduling.limit_ns = 50'000'000;
    options.scheduling.chooser = &walk;
    // A request is repeated after 200 us: within a long wait, or behind some hundred steps.
    options.scheduling.chosen_ns = one_of(20, 500);
    options.payer_comes = [this](ClusterNode&) { begin_choice(); };
    return options;
}

void StepWorld::tell_options() const {
    const ClusterOptions& options = cluster->options();
    std::printf(
        "%s: %u nodes, %u threads on node 0, exclusive %d, join %d, hand over %s, "
        "%u notices, row %u, lease %" PRIu64 ", %s, vain %u\n",
        std::string(step_shape_names[static_cast<unsigned>(shape)]).c_str(), options.nodes,
        options.threads_of_first, options.memory.exclusive, options.memory.join,
        options.memory.hand_over == HandOver::all ? "all" : "what wanders",
        options.memory.notices_max, options.memory.row_min, options.memory.lease,
        options.engine.as_mprotect ? "mprotect" : "uffd", options.memory.vain_max);
    std::printf("percent: forgotten %u, evict %u, quiet %u, stray reports %u; a step takes %" PRIu64
                " ns\n",
                options.engine.forgotten, options.engine.evict, options.engine.quiet,
                options.engine.stray_reports, options.scheduling.chosen_ns);
}

// Blocks 0 and 1 lie beside each other; the last one may have another initial home.
std::array<std::uintptr_t, step_blocks> StepWorld::choose_blocks() {
    const std::uintptr_t heap = cluster->map().heap_arena(NodeId{0}).address;
    const bool elsewhere = shape != StepShape::first_use && random.happens(30);
    return {heap, heap + page_bytes,
            elsewhere ? cluster->map().heap_arena(NodeId{1}).address : heap + 2 * page_bytes};
}

// Two of the invariants do not hold between all steps of these programs.
// 4: a readonly copy may differ from the public one where its write has not been noted. That is so
// on pages that stay open although they are written (`quiet`), until they are watched. Where first
// writes fault, Invariants leaves it out on nodes of several threads, since a release may merge
// what an atomic of another one has made writable; but each node here has a payer, which releases
// beside the only thread of the program.
// 8: what is pinned or the node's own stays accessible, unless the machine takes its page
// (`evict`).
std::string StepWorld::broken() {
    const SoftwareEngineOptions& engine = cluster->options().engine;
    const std::string what = invariants->broken();
    const auto is_about = [&](const char* number) { return what.find(number) != what.npos; };
    if ((engine.quiet > 0 || engine.as_mprotect) && is_about("invariant 4")) return {};
    if (engine.evict > 0 && is_about("invariant 8")) return {};
    return what;
}

StepWorld::StepWorld(net::sim::FiberStacks& stacks, std::uint64_t seed, StepShape shape, bool tell)
    : seed(seed), shape(shape), tells(tell), walk(seed), random(seed * 2 + 1) {
    cluster.emplace(stacks, draw_options());
    if (tells) tell_options();
    blocks = choose_blocks();
    invariants.emplace(*cluster, std::vector<std::uintptr_t>{blocks.begin(), blocks.end()});
    walk.check(1 + random.below(7), [this] { return broken(); });
    draw_program();
}

std::uint32_t StepWorld::draw_phases() {
    switch (shape) {
        case StepShape::any: return 2 + static_cast<std::uint32_t>(random.below(4));
        case StepShape::wandering:
        case StepShape::releases: return 4 + static_cast<std::uint32_t>(random.below(3));
        case StepShape::atomics:
        case StepShape::counters: return 3;
        case StepShape::first_use: return 1 + static_cast<std::uint32_t>(random.below(2));
    }
    return 0;
}

void StepWorld::draw_program() {
    const std::uint32_t threads = cluster->threads();
    const std::uint32_t phases = draw_phases();
    roles = draw_roles(random, shape, threads, cluster->threads_of(0), phases);
    const auto below = [&](std::uint32_t bound) {
        return static_cast<std::uint32_t>(random.below(bound));
    };
    operations_max = 1 + below(6);
    if (shape == StepShape::first_use) {
        first_writer = below(threads);
        releases_percent = below(60);
    }
    flags_from = below(step_blocks);
    flags_behind = 1 + below(step_blocks - 1);
    sent.resize(threads);
    gates.resize(nodes());
    in_atomic = std::make_unique<bool[]>(std::size_t{nodes()} * step_words);
    mails.resize(nodes() * nodes());
}

}  // namespace hiroba::sim_test
