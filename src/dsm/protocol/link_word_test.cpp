// SPDX-License-Identifier: BSD-3-Clause
// Explores every interleaving of the queue lock's remote steps for two and three nodes.
#include "dsm/protocol/link_word.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <set>
#include <vector>

namespace hiroba::dsm {
namespace {

enum class At : std::uint8_t { idle, look, swing, waiting, holding, unlinking, done };

struct Actor {
    At at = At::idle;
    std::uint8_t target = 0;  // node whose word is looked at
    std::uint64_t seen = 0;   // what was read there
    std::uint8_t rounds_left = 0;
    bool granted = false;
    auto operator<=>(const Actor&) const = default;
};

template <std::size_t nodes>
struct World {
    std::array<std::uint64_t, nodes> words{};
    std::array<Actor, nodes> actors{};
    auto operator<=>(const World&) const = default;
};

constexpr NodeId first{0};

LinkWord word(std::uint64_t raw) { return LinkWord::from_raw(raw); }
NodeId id(std::size_t i) { return NodeId{static_cast<std::uint32_t>(i)}; }

// One atomic step of one node, as BlockLock makes them; false when it can only wait.
template <std::size_t nodes>
bool advance(World<nodes>& w, std::size_t i) {
    Actor& a = w.actors[i];
    switch (a.at) {
        case At::idle:
            if (a.rounds_left == 0) return false;
            --a.rounds_left;
            if (word(w.words[i]).kind(id(i), first) == LinkWord::Kind::unlocked) {
                w.words[i] = LinkWord::locked().raw();
                a.at = At::holding;
            } else {
                a.target = static_cast<std::uint8_t>(word(w.words[i]).node(first).value);
                w.words[i] = LinkWord::locked().raw();
                a.at = At::look;
            }
            return true;
        case At::look: {
            EXPECT_NE(a.target, i) << "the chase came back";
            a.seen = w.words[a.target];
            const Chase next = chase(word(a.seen), id(a.target), first);
            if (next.what == Chase::Do::follow) {
                a.target = static_cast<std::uint8_t>(next.next.value);
            } else {
                a.at = At::swing;
            }
            return true;
        }
        case At::swing: {
            a.at = At::look;
            if (w.words[a.target] != a.seen) return true;
            if (chase(word(a.seen), id(a.target), first).what == Chase::Do::take) {
                w.words[a.target] = LinkWord::link(id(i)).raw();
                a.at = At::holding;
            } else {
                w.words[a.target] = LinkWord::locked_with_successor(id(i)).raw();
                a.at = At::waiting;
            }
            return true;
        }
        case At::waiting:
            if (!a.granted) return false;
            a.granted = false;
            a.at = At::holding;
            return true;
        case At::holding:
            if (w.words[i] == LinkWord::locked().raw()) {
                w.words[i] = LinkWord::unlocked().raw();
                a.at = At::idle;
            } else {
                a.target = static_cast<std::uint8_t>(word(w.words[i]).node(first).value);
                w.words[i] = LinkWord::link(id(a.target)).raw();
                a.at = At::unlinking;
            }
            return true;
        case At::unlinking:
            w.actors[a.target].granted = true;
            a.at = At::idle;
            return true;
        case At::done: return false;
    }
    return false;
}

template <std::size_t nodes>
std::size_t explore(std::uint8_t rounds) {
    World<nodes> start;
    for (Actor& a : start.actors) a.rounds_left = rounds;
    std::set<World<nodes>> seen{start};
    std::deque<World<nodes>> todo{start};
    while (!todo.empty()) {
        const World<nodes> now = todo.front();
        todo.pop_front();
        unsigned holders = 0;
        for (const Actor& a : now.actors) holders += a.at == At::holding;
        EXPECT_LE(holders, 1u) << "two nodes hold the lock";
        bool moved = false;
        for (std::size_t i = 0; i < nodes; ++i) {
            World<nodes> next = now;
            if (!advance(next, i)) continue;
            moved = true;
            if (seen.insert(next).second) todo.push_back(next);
        }
        bool all_done = true;
        for (const Actor& a : now.actors) all_done &= a.at == At::idle && a.rounds_left == 0;
        EXPECT_TRUE(moved || all_done) << "deadlock";
        if (testing::Test::HasFailure()) break;
    }
    return seen.size();
}

TEST(QueueLock, two_nodes_exclude_each_other_and_never_deadlock) { EXPECT_GT(explore<2>(3), 100u); }

TEST(QueueLock, three_nodes_exclude_each_other_and_never_deadlock) {
    EXPECT_GT(explore<3>(2), 10'000u);
}

TEST(LinkWord, zero_is_a_link_to_the_initial_home_and_unlocked_there) {
    const LinkWord untouched;
    EXPECT_EQ(untouched.kind(NodeId{2}, NodeId{2}), LinkWord::Kind::unlocked);
    EXPECT_EQ(untouched.kind(NodeId{1}, NodeId{2}), LinkWord::Kind::link);
    EXPECT_EQ(untouched.node(NodeId{2}), NodeId{2});
}

}  // namespace
}  // namespace hiroba::dsm
