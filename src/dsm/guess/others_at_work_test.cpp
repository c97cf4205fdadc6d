// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/others_at_work.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hiroba::dsm {
namespace {

constexpr std::uint64_t idle_ns = 100;

// The words of all nodes, which a test changes.
struct Boards {
    std::vector<std::uint64_t> words;
    std::vector<unsigned> looked_at;
    std::uint64_t operator()(NodeId node) {
        looked_at.push_back(node.value);
        return words[node.value];
    }
};

TEST(OthersAtWork, ends_when_the_only_other_has_paused) {
    Boards boards{{0, 2}, {}};
    OthersAtWork others{NodeId{0}, NodeId{1}, 2, 0};
    EXPECT_TRUE(others.look(10, idle_ns, boards));
    boards.words[1] = 4;
    EXPECT_TRUE(others.look(150, idle_ns, boards));
    EXPECT_TRUE(others.look(249, idle_ns, boards));
    EXPECT_FALSE(others.look(250, idle_ns, boards));
    EXPECT_EQ(boards.looked_at, (std::vector<unsigned>{1, 1, 1, 1}));
}

TEST(OthersAtWork, goes_on_while_a_third_node_makes_atomics) {
    Boards boards{{2, 2, 2, 2}, {}};
    OthersAtWork others{NodeId{1}, NodeId{3}, 4, 0};
    for (std::uint64_t now = 10; now < 1000; now += 10) {
        boards.words[2] += 2;
        ASSERT_TRUE(others.look(now, idle_ns, boards)) << now;
    }
    std::uint64_t now = 1000;
    while (now < 2000 && others.look(now, idle_ns, boards)) now += 10;
    EXPECT_LT(now, 1200);
    EXPECT_EQ(boards.looked_at[0], 3u);
    EXPECT_EQ(boards.looked_at[1], 0u);
    EXPECT_EQ(boards.looked_at[2], 2u);
}

TEST(OthersAtWork, stays_at_a_node_that_is_in_the_runtime_for_an_atomic) {
    Boards boards{{0, 0, 3, 0}, {}};
    OthersAtWork others{NodeId{0}, NodeId{2}, 4, 0};
    for (std::uint64_t now = 10; now < 1000; now += 10)
        ASSERT_TRUE(others.look(now, idle_ns, boards)) << now;
    for (const unsigned node : boards.looked_at) EXPECT_EQ(node, 2u);
}

TEST(OthersAtWork, takes_what_a_node_shows_first_for_nothing_new) {
    Boards boards{{0, 8, 6, 4}, {}};
    OthersAtWork others{NodeId{0}, NodeId{1}, 4, 0};
    EXPECT_TRUE(others.look(50, idle_ns, boards));
    EXPECT_FALSE(others.look(100, idle_ns, boards));
}

TEST(OthersAtWork, looks_at_sixteen_of_many_nodes) {
    Boards boards{std::vector<std::uint64_t>(1024), {}};
    OthersAtWork others{NodeId{1020}, NodeId{1015}, 1024, 0};
    for (int i = 0; i < 17; ++i) others.look(1, idle_ns, boards);
    EXPECT_EQ(boards.looked_at, (std::vector<unsigned>{1015, 1016, 1017, 1018, 1019, 1021, 1022,
                                                       1023, 0, 1, 2, 3, 4, 5, 6, 7, 1015}));
}

}  // namespace
}  // namespace hiroba::dsm
