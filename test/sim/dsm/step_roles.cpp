// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/step_roles.hpp"

namespace hiroba::sim_test {

namespace {

using Kind = WordRole::Kind;

std::uint32_t draw(Random& random, std::uint32_t bound) {
    return static_cast<std::uint32_t>(random.below(bound));
}

/// Percent of the words that are of each kind; atomics have the others.
struct Shares {
    std::uint32_t owned, readable, locked;
};
constexpr Shares shares[] = {{60, 8, 10}, {25, 8, 5}, {40, 8, 10}, {80, 8, 10}};

WordRole draw_role(Random& random, const Shares& of, std::uint32_t threads) {
    const std::uint32_t at = draw(random, 100);
    if (at < of.owned) return {Kind::owned, draw(random, threads)};
    if (at < of.owned + of.readable) return {Kind::readable};
    if (at < of.owned + of.readable + of.locked) return {Kind::locked, draw(random, step_locks)};
    return {Kind::atomic};
}

// Most of one block: so that it can become one node's own.
void give_block_to_one(Random& random, PhaseRoles& roles, std::uint32_t threads) {
    const std::uint32_t who = draw(random, threads);
    const std::uint32_t first = draw(random, step_blocks) * words_of_block;
    for (std::uint32_t word = first; word < first + words_of_block; ++word) {
        if (random.happens(85)) roles[word] = {Kind::owned, who};
    }
}

WordRole draw_shared_role(Random& random, std::uint32_t owner, std::uint32_t threads) {
    const std::uint32_t at = draw(random, 100);
    if (at < 35) return {Kind::owned, draw(random, threads)};
    if (at < 50) return {Kind::atomic};
    if (at < 55) return {Kind::locked, draw(random, step_locks)};
    return {Kind::owned, owner};
}

// One thread has the whole block for two or three phases, so that it becomes its node's own; then
// each phase has an owner of its own, perhaps beside others.
void let_block_wander(Random& random, std::vector<PhaseRoles>& roles, std::uint32_t block,
                      std::uint32_t threads) {
    const std::uint32_t settled = 2 + draw(random, 2);
    std::uint32_t owner = draw(random, threads);
    for (std::uint32_t phase = 0; phase < roles.size(); ++phase) {
        if (phase >= settled) owner = draw(random, threads);
        const bool is_shared = phase >= settled && random.happens(60);
        for (std::uint32_t i = 0; i < words_of_block; ++i) {
            roles[phase][block * words_of_block + i] =
                is_shared ? draw_shared_role(random, owner, threads) : WordRole{Kind::owned, owner};
        }
    }
}

// Another node's first, so that node 0 gets the blocks with their home. Then node 0 is alone with
// them: what its atomics make is read by no other. In the next phase the first of them makes a
// block the node's own, while other nodes come to it; and what node 0 wrote there is read at the
// end.
void let_first_node_count(Random& random, std::vector<PhaseRoles>& roles, std::uint32_t threads,
                          std::uint32_t threads_of_first) {
    for (std::uint32_t phase = 0; phase < roles.size(); ++phase) {
        for (WordRole& role : roles[phase]) {
            const std::uint32_t who = draw(random, threads_of_first);
            const bool counts = random.happens(50);
            if (phase == 0) {
                role = {Kind::owned, threads - 1};
            } else if (counts) {
                role = {phase % 2 == 1 ? Kind::counted : Kind::atomic};
            } else {
                role = {Kind::owned, who};
            }
        }
    }
}

void let_all_count(Random& random, std::vector<PhaseRoles>& roles, std::uint32_t threads) {
    for (PhaseRoles& phase : roles) {
        for (WordRole& role : phase) {
            const std::uint32_t who = draw(random, threads);
            role = random.happens(70) ? WordRole{Kind::atomic} : WordRole{Kind::owned, who};
        }
    }
}

}  // namespace

std::vector<PhaseRoles> draw_roles(Random& random, StepShape shape, std::uint32_t threads,
                                   std::uint32_t threads_of_first, std::uint32_t phases) {
    std::vector<PhaseRoles> roles(phases);
    const Shares& of = shares[random.below(std::size(shares))];
    const bool to_one = random.happens(60);
    for (PhaseRoles& phase : roles) {
        for (WordRole& role : phase) role = draw_role(random, of, threads);
        if (to_one) give_block_to_one(random, phase, threads);
    }
    if (shape == StepShape::wandering || shape == StepShape::releases) {
        for (std::uint32_t block = 0; block < step_blocks; ++block) {
            let_block_wander(random, roles, block, threads);
        }
    }
    if (shape == StepShape::counters) let_all_count(random, roles, threads);
    if (shape == StepShape::atomics) let_first_node_count(random, roles, threads, threads_of_first);
    return roles;
}

}  // namespace hiroba::sim_test
