// SPDX-License-Identifier: BSD-3-Clause
// Role: the barrier by bytes between real processes and simulated nodes, as kicks have it and as
// the collectives have it, over each provider as it is and as if it mapped nothing.
#include <signal.h>

#include <array>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "conformance/both_ways.hpp"
#include "net/collectives.hpp"
#include "net/kick/kick.hpp"

namespace hiroba::conformance {
namespace {

using namespace net::kick;

HIROBA_CONFORMANCE(Barriers);

constexpr std::uint64_t job_key = 7;
constexpr std::uint64_t safety_net_ns = 100'000'000;  // a sleep without a wake-up

/// A node with each barrier, and a word of each node that its peers kick.
struct Node {
    Node(Rig& rig, bool mapped)
        : endpoint(open_mapped(rig, mapped, job_key)),
          collectives(need(net::Collectives::make(*endpoint, job_key))),
          board(need(Board::create(*endpoint, job_key))),
          places{need(Barrier::reserve(*board)), need(Barrier::reserve(*board))},
          words(need(board->reserve(page_bytes, page_bytes))) {
        need(endpoint->connect());
        collectives->attach();
        board->attach();
        fast.emplace(need(Barrier::open(*board, places[0])));
        tree.emplace(need(Barrier::open(*board, places[1], everyone(*endpoint), Shape::tree)));
        for (std::uint32_t peer = 0; peer < rig.nodes; ++peer)
            to_all.push_back(
                need(board->kick<std::uint64_t>(need(board->target(NodeId{peer}, words)))));
    }
    static constexpr std::uint32_t ways = 3;
    void meet(std::uint64_t way) {
        if (way % ways == 0) return collectives->barrier();
        (way % ways == 1 ? *fast : *tree).arrive_and_wait();
    }
    /// Longer than a waiter stays awake.
    void be_late() {
        endpoint->wait_until([] { return false; }, now_ns() + 3'000'000);
    }

    std::unique_ptr<net::Endpoint> endpoint;
    std::unique_ptr<net::Collectives> collectives;
    std::unique_ptr<Board> board;
    std::array<Offset, 2> places;
    Offset words;
    std::optional<Barrier> fast, tree;
    std::vector<Kick<std::uint64_t>> to_all;
};

TEST_P(Barriers, hold_everybody_back_one_behind_the_other) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            Random random{rig.self.value + 1};
            for (std::uint64_t round = 1; round <= rig.rounds(3000); ++round) {
                if (random.below(200) == 0) node.be_late();
                for (auto& kick : node.to_all) kick.store(rig.self.value * 8, round);
                node.meet(round);
                const bool is_tree = round % Node::ways == 2;
                for (std::uint32_t peer = 0; peer < rig.nodes; ++peer) {
                    // A packet between two nodes that a tree does not join may be slower than the
                    // tree.
                    const bool joined = !is_tree || peer == 0 || rig.self.value == 0;
                    if (!joined && !node.to_all[peer].is_mapped()) continue;
                    const auto seen = node.board->load<std::uint64_t>(node.words + peer * 8);
                    ASSERT_TRUE(seen == round || seen == round + 1) << seen << " in " << round;
                }
            }
            rig.meet();
        });
    });
}

TEST_P(Barriers, wake_members_that_sleep) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "nobody is waited for";
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            constexpr std::uint64_t rounds = 36;
            std::uint64_t slept_through = 0;  // rounds that only the safety net ended
            for (std::uint64_t round = 0; round < rounds; ++round) {
                const std::uint64_t begun_ns = now_ns();
                if (round / Node::ways % rig.nodes == rig.self.value) node.be_late();
                node.meet(round);
                slept_through += now_ns() - begun_ns >= safety_net_ns;
            }
            EXPECT_TRUE(rig.storm || slept_through < rounds / 3) << slept_through;
            rig.meet();
        });
    });
}

TEST_P(Barriers, stay_closed_when_a_member_has_died_and_block_nobody) {
    if (const char* const why = no_loss_can_be_tested()) GTEST_SKIP() << why;
    run_with_victim([](Rig& rig, NodeId victim) {
        Node node{rig, true};
        for (std::uint64_t round = 0; round < 30; ++round) node.meet(round);
        rig.meet();
        if (rig.self == victim) raise(SIGKILL);
        node.fast->arrive();
        node.tree->arrive();
        rig.await_loss();
        // A wait of the barrier's own ends with the process, when the launcher tells of a loss.
        const auto passes = [&] { return node.fast->passed() || node.tree->passed(); };
        EXPECT_FALSE(node.endpoint->wait_until(passes, now_ns() + 300'000'000));
    });
}

}  // namespace
}  // namespace hiroba::conformance
