// SPDX-License-Identifier: BSD-3-Clause
// Role: many barriers of the C++ face in a row, now and then with a late node: what any node wrote
// before one, each reads behind it; what they gather, broadcast and reduce comes to each node.
// Usage: spmd_barriers ROUNDS [NODE], which is killed in the middle, before it comes to one.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <hiroba/dsm.hpp>
#include <string>
#include <vector>

namespace {

std::uint64_t mixed(std::uint64_t seed) {
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return seed ^ seed >> 31;
}

// Long enough for the others to fall asleep.
void be_late() {
    const timespec pause{0, 3'000'000};
    nanosleep(&pause, nullptr);
}

[[noreturn]] void fail(const hiroba::SharedMemory& shared, const char* what, std::uint64_t round) {
    std::fprintf(stderr, "node %u, round %lu: %s\n", shared.node(), round, what);
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const std::uint64_t rounds = std::strtoull(argv[1], nullptr, 10);
    const unsigned victim = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : ~0u;
    std::string why;
    const auto shared = hiroba::SharedMemory::open(&why);
    if (!shared) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 1;
    }
    const unsigned node = shared->node(), nodes = shared->nodes();
    // Each node's word in a page of its own, so that each writes and reads pages of all.
    constexpr std::size_t words_of_node = 4096 / 8;
    std::uint64_t* mine = nullptr;
    if (node == nodes - 1) mine = static_cast<std::uint64_t*>(shared->allocate(nodes * 4096, 4096));
    auto* const words = reinterpret_cast<std::uint64_t*>(
        shared->broadcast(reinterpret_cast<std::uint64_t>(mine), nodes - 1));
    std::vector<std::uint64_t> all(nodes);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        if (node == victim && round == rounds / 2) std::raise(SIGKILL);
        if (mixed(round * 64 + node) % 97 == 0) be_late();
        words[node * words_of_node] = round * 100 + node;
        shared->barrier();
        for (unsigned other = 0; other < nodes; ++other)
            if (words[other * words_of_node] != round * 100 + other)
                fail(*shared, "what another node wrote before the barrier is not there", round);
        shared->all_gather(round * 1000 + node, all.data());
        for (unsigned other = 0; other < nodes; ++other)
            if (all[other] != round * 1000 + other) fail(*shared, "gathered wrong words", round);
        const auto from = static_cast<unsigned>(round % nodes);
        if (shared->broadcast(round * node, from) != round * from)
            fail(*shared, "a wrong word was broadcast", round);
        const auto sum = shared->all_reduce(round + node,
                                            [](std::uint64_t a, std::uint64_t b) { return a + b; });
        if (sum != nodes * round + nodes * (nodes - 1ul) / 2) fail(*shared, "a wrong sum", round);
    }
    shared->barrier();
    if (node == 0) std::printf("%lu rounds of barriers of %u nodes: held\n", rounds, nodes);
    return 0;
}
