// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/news_board.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "dsm/test_parts/wire_provider.hpp"

namespace hiroba::dsm {
namespace {

using test::Wire;
using test::WireProvider;

constexpr std::size_t news_bytes_max = 4096;

struct OneNode {
    OneNode(Wire& wire, NodeId self, std::uint32_t nodes)
        : endpoint(net::Endpoint::over(self, nodes, std::make_unique<WireProvider>(wire, self))),
          board(*endpoint, *NewsBoard::allocate(*endpoint, news_bytes_max), news_bytes_max) {}
    void tell(ReleaseNumber release, std::size_t bytes, std::byte filling) {
        std::fill_n(board.own_news().begin(), bytes, filling);
        board.write(release, bytes);
    }
    std::unique_ptr<net::Endpoint> endpoint;
    NewsBoard board;
};

/// Nodes 0 and 2 read the board of node 1, which is on a host of its own.
class NewsBetweenHosts : public testing::Test {
protected:
    NewsBetweenHosts() {
        wire.hosts = {1, 2, 1};
        wire.lists_in_order = true;
        for (std::uint32_t i = 0; i < 3; ++i)
            nodes.push_back(std::make_unique<OneNode>(wire, NodeId{i}, 3u));
        for (auto& node : nodes) node->board.attach();
    }
    /// Reads up to `release`, or wants it; returns the exchanges that it took.
    std::size_t look(std::uint32_t node, ReleaseNumber release) {
        const std::size_t before = wire.exchanges;
        news = nodes[node]->board.read_or_want(NodeId{1}, release, room, first);
        return wire.exchanges - before;
    }
    Wire wire{3};
    std::vector<std::unique_ptr<OneNode>> nodes;
    std::vector<std::byte> room = std::vector<std::byte>(news_bytes_max);
    std::optional<Bytes> news;
    bool first = false;
};

TEST_F(NewsBetweenHosts, are_looked_for_and_wanted_in_one_exchange) {
    ASSERT_TRUE(nodes[0]->board.looks_in_one_exchange(NodeId{1}));
    ASSERT_FALSE(nodes[0]->board.looks_in_one_exchange(NodeId{2}));
    EXPECT_EQ(look(0, 3), 1u);
    EXPECT_FALSE(news);
    EXPECT_TRUE(first);
    EXPECT_EQ(nodes[1]->board.wanted(), 3u);
    // What is told of need not be wanted: whoever is asked sees that by the numbers.
    nodes[1]->tell(4, 100, std::byte{7});
    EXPECT_EQ(look(0, 4), 1u);
    ASSERT_TRUE(news);
    ASSERT_EQ(news->size(), 100u);
    EXPECT_EQ(std::count(news->begin(), news->end(), std::byte{7}), 100);
    EXPECT_LE(nodes[1]->board.wanted(), nodes[1]->board.written());
}

TEST_F(NewsBetweenHosts, what_all_have_acquired_is_the_least) {
    EXPECT_EQ(nodes[0]->board.acquired_by_all(), 0u);
    nodes[1]->board.show_acquired(NodeId{0}, 3);
    EXPECT_EQ(nodes[0]->board.acquired_by_all(), 0u);
    nodes[2]->board.show_acquired(NodeId{0}, 5);
    EXPECT_EQ(nodes[0]->board.acquired_by_all(), 3u);
    nodes[1]->board.show_acquired(NodeId{0}, 2);
    EXPECT_EQ(nodes[0]->board.acquired_by_all(), 3u);
    EXPECT_EQ(nodes[1]->board.acquired_by_all(), 0u);
}

TEST_F(NewsBetweenHosts, are_wanted_once) {
    look(0, 3);
    EXPECT_EQ(look(0, 3), 1u);
    EXPECT_FALSE(first) << "told twice";
    // Node 2 has not seen what is wanted: one exchange more, and nothing is lowered.
    EXPECT_EQ(look(2, 2), 1u);
    EXPECT_FALSE(first);
    EXPECT_EQ(nodes[1]->board.wanted(), 3u);
    EXPECT_EQ(look(2, 5), 1u);
    EXPECT_TRUE(first);
    EXPECT_EQ(look(0, 4), 1u);
    EXPECT_FALSE(first) << "node 2 has wanted more";
    EXPECT_EQ(nodes[1]->board.wanted(), 5u);
    look(2, 6);
    EXPECT_EQ(look(0, 7), 2u) << "what node 0 had seen is old";
    EXPECT_TRUE(first);
    EXPECT_EQ(nodes[1]->board.wanted(), 7u);
}

TEST_F(NewsBetweenHosts, come_whole_however_long_they_are) {
    nodes[1]->tell(1, news_bytes_max, std::byte{5});
    EXPECT_EQ(look(0, 1), 2u);
    ASSERT_TRUE(news);
    ASSERT_EQ(news->size(), news_bytes_max);
    EXPECT_EQ(std::count(news->begin(), news->end(), std::byte{5}),
              static_cast<std::ptrdiff_t>(news_bytes_max));
}

TEST_F(NewsBetweenHosts, turns_are_noted_as_if_they_were_stored) {
    NewsBoard& board = nodes[1]->board;
    using Turn = NewsBoard::Turn;
    board.note_turn(NodeId{0}, 12, Turn::urgent);
    EXPECT_TRUE(board.is_turn_asked());
    EXPECT_TRUE(board.has_turn(NodeId{0}, 12));
    const auto given = board.give_turn([](Turn, std::uint32_t) { return true; });
    ASSERT_TRUE(given);
    EXPECT_EQ(given->node, NodeId{0});
    EXPECT_EQ(given->block, 12u);
    EXPECT_TRUE(nodes[0]->board.is_turn_given(NodeId{1}, 12));
    board.note_turn_ended(NodeId{0});
    EXPECT_FALSE(board.has_turn(NodeId{0}, 12));
}

TEST_F(NewsBetweenHosts, the_token_has_one_holder) {
    NewsBoard &first_board = nodes[0]->board, &second = nodes[1]->board, &third = nodes[2]->board;
    EXPECT_FALSE(second.token_holder());
    EXPECT_TRUE(second.take_token(std::nullopt));
    EXPECT_FALSE(third.take_token(std::nullopt)) << "it has gone meanwhile";
    EXPECT_EQ(first_board.token_holder(), NodeId{1});
    third.want_token(NodeId{1});
    EXPECT_TRUE(second.is_token_wanted());
    EXPECT_FALSE(first_board.is_token_wanted());
    second.give_token();
    EXPECT_FALSE(second.is_token_wanted());
    EXPECT_FALSE(third.token_holder());
    third.want_token(NodeId{1});  // too late
    EXPECT_TRUE(second.take_token(std::nullopt));
    EXPECT_FALSE(second.is_token_wanted());
    second.give_token();
    // From one that makes no more atomics; that gives away nothing of others'.
    EXPECT_TRUE(third.take_token(std::nullopt));
    EXPECT_TRUE(first_board.take_token(NodeId{2}));
    third.give_token();
    EXPECT_EQ(second.token_holder(), NodeId{0});
}

}  // namespace
}  // namespace hiroba::dsm
