// SPDX-License-Identifier: BSD-3-Clause
// Role: every atomic of AtomicWord by all nodes at the same words, the answers checked.
// Usage: spmd_words ROUNDS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <hiroba/dsm.hpp>
#include <string>

namespace {

struct Words {
    std::uint64_t sum, squares, bits, cleared, flips, most, turn, winner;
};

void insist(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "WRONG: %s\n", what);
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
    std::string why;
    const auto memory = hiroba::SharedMemory::open(&why);
    if (!memory) return std::fprintf(stderr, "%s\n", why.c_str()), 78;
    const std::uint64_t node = memory->node(), nodes = memory->nodes();
    auto* const words = memory->allocate_together<Words>(1);
    insist(words != nullptr && words->sum == 0, "zeroed memory");
    auto* const mine = memory->allocate<double>(1000);
    insist(mine != nullptr && mine[0] == 0 && mine[999] == 0, "memory of one's own");
    insist(memory->allocate<double>(~std::size_t{0} / 4) == nullptr, "a product that wraps around");
    const auto word = [&](std::uint64_t& of) { return hiroba::AtomicWord{*memory, &of}; };
    if (node == 0) word(words->cleared).store(~std::uint64_t{0});
    memory->barrier();

    for (std::uint64_t round = 1; round <= rounds; ++round) {
        word(words->sum).fetch_add(node + 1);
        std::uint64_t found = 0;
        while (!word(words->squares).compare_exchange(found, found + round * round)) {
        }
        word(words->flips).fetch_xor(round << node);
        word(words->most).update([&](std::uint64_t old) {
            return std::max(old, round * 10 + node);
        });
    }
    word(words->bits).fetch_or(std::uint64_t{1} << node);
    word(words->cleared).fetch_and(~(std::uint64_t{1} << node));
    std::uint64_t nobody = 0;
    const bool won = word(words->winner).compare_exchange(nobody, node + 1);
    insist(won || (nobody > 0 && nobody <= nodes), "what compare_exchange found");
    // One node after the other.
    while (word(words->turn).load() != node) {
    }
    insist(word(words->turn).exchange(node + 1) == node, "the turn");
    memory->barrier();

    std::uint64_t squares = 0, flips = 0;
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        squares += round * round * nodes;
        for (std::uint64_t other = 0; other < nodes; ++other) flips ^= round << other;
    }
    insist(words->sum == rounds * nodes * (nodes + 1) / 2, "sum");
    insist(words->squares == squares && words->flips == flips, "squares or flips");
    insist(words->most == rounds * 10 + nodes - 1 && words->turn == nodes, "the most, or the turn");
    const std::uint64_t all = (std::uint64_t{1} << nodes) - 1;
    insist(words->bits == all && words->cleared == ~all, "bits");
    const std::uint64_t winners = memory->all_reduce(
        std::uint64_t{won}, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    insist(winners == 1, "one node wins");
    memory->deallocate(mine);
    memory->barrier();
    if (node == 0) std::printf("words of %lu nodes: right\n", nodes);
    return 0;
}
