// SPDX-License-Identifier: BSD-3-Clause
// The unbalanced tree search on hiroba/tasks.hpp: a tree whose vertices know their number of
// children by a hash, counted by tasks that run on any node of the job.
//
// Source: Olivier et al., UTS: An Unbalanced Tree Search Benchmark (2006): geometric trees of a
// fixed shape, whose vertices are states of SHA-1 (FIPS 180-1), so that the counts are known:
// T1 has 4,130,071 vertices, T1L 102,181,082.
//
//     hiroba run --spmd -n 2 ./tasks_uts small|t1|t1l [workers]
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "hiroba/tasks.hpp"

namespace uts {

using Digest = std::array<std::uint8_t, 20>;

/// SHA-1 of a message of at most 55 bytes, one block.
template <std::size_t bytes>
inline Digest sha1(const std::array<std::uint8_t, bytes>& message) noexcept {
    static_assert(bytes <= 55);
    std::uint32_t w[80] = {};
    for (std::size_t i = 0; i < bytes; ++i)
        w[i / 4] |= std::uint32_t{message[i]} << (24 - 8 * (i % 4));
    w[bytes / 4] |= 0x80u << (24 - 8 * (bytes % 4));
    w[15] = bytes * 8;
    for (int i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    const std::uint32_t first[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    std::uint32_t a = first[0], b = first[1], c = first[2], d = first[3], e = first[4];
    const auto turn = [&](std::uint32_t mixed, std::uint32_t constant, std::uint32_t word) {
        const std::uint32_t next = std::rotl(a, 5) + mixed + e + constant + word;
        e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
    };
    for (int i = 0; i < 20; ++i) turn((b & c) | (~b & d), 0x5a827999, w[i]);
    for (int i = 20; i < 40; ++i) turn(b ^ c ^ d, 0x6ed9eba1, w[i]);
    for (int i = 40; i < 60; ++i) turn((b & c) | (b & d) | (c & d), 0x8f1bbcdc, w[i]);
    for (int i = 60; i < 80; ++i) turn(b ^ c ^ d, 0xca62c1d6, w[i]);
    const std::uint32_t last[5] = {first[0] + a, first[1] + b, first[2] + c, first[3] + d,
                                   first[4] + e};
    Digest made;
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = static_cast<std::uint8_t>(last[i / 4] >> (24 - 8 * (i % 4)));
    return made;
}

/// A tree: the root has `branching` children on average, others too down to depth `depth_max`.
struct Tree {
    double branching = 4;
    std::uint32_t depth_max = 10;
    std::uint32_t seed = 19;
};
inline constexpr Tree t1{4, 10, 19}, t1l{4, 13, 29};

struct Vertex {
    Digest state;
    std::uint32_t depth;
};

inline Digest of_number(std::array<std::uint8_t, 24> message, std::uint32_t number) noexcept {
    for (std::size_t i = 0; i < 4; ++i)
        message[20 + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
    return sha1(message);
}

inline Vertex root_of(const Tree& tree) noexcept {
    // Sixteen zeros, then the seed.
    std::array<std::uint8_t, 20> message{};
    for (std::size_t i = 0; i < 4; ++i)
        message[16 + i] = static_cast<std::uint8_t>(tree.seed >> (24 - 8 * i));
    return {sha1(message), 0};
}

inline Vertex child_of(const Vertex& vertex, std::uint32_t number) noexcept {
    std::array<std::uint8_t, 24> message{};
    std::copy(vertex.state.begin(), vertex.state.end(), message.begin());
    return {of_number(message, number), vertex.depth + 1};
}

inline std::uint32_t children_of(const Tree& tree, const Vertex& vertex) noexcept {
    if (vertex.depth >= tree.depth_max) return 0;
    std::uint32_t drawn = 0;
    for (std::size_t i = 16; i < 20; ++i) drawn = drawn << 8 | vertex.state[i];
    const double u = (drawn & 0x7fffffff) / 2147483648.0;
    const double p = 1 / (1 + tree.branching);
    return std::min(100u,
                    static_cast<std::uint32_t>(std::floor(std::log(1 - u) / std::log(1 - p))));
}

/// How many vertices the subtree has: a task for each child but the last.
inline std::uint64_t count(const Tree& tree, const Vertex& vertex) {
    const std::uint32_t children = children_of(tree, vertex);
    if (children == 0) return 1;
    std::uint64_t all = 1;
    // Counts that are waited for lie in futures, which do not move: halves of the children.
    struct Range {
        static std::uint64_t sum(const Tree& tree, const Vertex& vertex, std::uint32_t first,
                                 std::uint32_t last) {
            if (last - first == 1) return count(tree, child_of(vertex, first));
            const std::uint32_t middle = first + (last - first) / 2;
            auto upper = hiroba::tasks::async(hiroba::tasks::anywhere,
                                              [=] { return sum(tree, vertex, middle, last); });
            const std::uint64_t lower = sum(tree, vertex, first, middle);
            return lower + upper.get();
        }
    };
    all += Range::sum(tree, vertex, 0, children);
    return all;
}

/// The same by calls alone.
inline std::uint64_t count_plainly(const Tree& tree, const Vertex& vertex) noexcept {
    std::uint64_t all = 1;
    const std::uint32_t children = children_of(tree, vertex);
    for (std::uint32_t i = 0; i < children; ++i) all += count_plainly(tree, child_of(vertex, i));
    return all;
}

}  // namespace uts

int main(int words, char** word) {
    using namespace hiroba;
    const char* const name = words > 1 ? word[1] : "small";
    const std::uint32_t workers = words > 2 ? static_cast<std::uint32_t>(std::atoi(word[2])) : 1;
    uts::Tree tree{4, 7, 19};
    std::uint64_t wanted = 0;
    if (std::strcmp(name, "t1") == 0) tree = uts::t1, wanted = 4'130'071;
    if (std::strcmp(name, "t1l") == 0) tree = uts::t1l, wanted = 102'181'082;
    if (wanted == 0) wanted = uts::count_plainly(tree, uts::root_of(tree));

    std::string why;
    const auto network = net::Network::open(&why);
    const auto scheduler =
        network ? tasks::Scheduler::open(network.get(), {.workers = workers}, &why) : nullptr;
    if (!scheduler || !network->connect(&why)) return std::fprintf(stderr, "%s\n", why.c_str()), 78;

    network->barrier();
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t found =
        scheduler->run([=] { return uts::count(tree, uts::root_of(tree)); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const std::uint64_t stolen = network->all_reduce(
        scheduler->counts().stolen, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    if (network->self().value == 0)
        std::printf(
            "%s on %u nodes of %u workers over %s: %llu vertices, %.3f s, %llu stolen: %s\n", name,
            network->nodes(), workers, network->provider(), static_cast<unsigned long long>(found),
            took.count(), static_cast<unsigned long long>(stolen),
            found == wanted ? "VERIFICATION SUCCESSFUL" : "VERIFICATION FAILED");
    return found == wanted ? 0 : 1;
}
