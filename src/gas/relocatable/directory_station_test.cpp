// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/directory_station.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hiroba::gas {
namespace {

/// The directory node of all pages of a job of 130 ranks, three words of sharers.
class Station : public testing::Test {
protected:
    Station() : words_(shape_.directory_pages() * shape_.entry_words()) {
        station_.attach(words_.data());
        station_.publish({.first = page_, .pages = 1, .bytes = 4096, .kind = 2, .rank = 129});
    }
    /// The ranks that are told to stop when `rank` claims the page.
    RankSet sharers_for(std::uint32_t rank) {
        const std::uint64_t words[] = {page_};
        const auto messages = station_.claimed(NodeId{rank}, 7, words);
        EXPECT_EQ(messages.size(), 1u);
        EXPECT_EQ(messages[0].kind, SpaceMessageKind::granted);
        EXPECT_EQ(messages[0].words.size(), 2u + shape_.sharer_words());
        RankSet sharers;
        for (std::uint32_t i = 0; i < shape_.sharer_words(); ++i) {
            sharers.word(i) = messages[0].words[2 + i];
        }
        return sharers;
    }
    void ask(std::uint32_t rank) {
        const std::uint64_t words[] = {tagged(page_, 5)};
        const auto messages = station_.asked(NodeId{rank}, 0, words);
        ASSERT_EQ(messages.size(), 1u);
        EXPECT_EQ(PageWord::unpack(messages[0].words[1]).owner, 129u);
    }

    static constexpr SpaceShape shape_{130, 12, 130 * 16 * 2};
    static constexpr std::uint64_t page_ = 130 * 16;  // a run of node 0
    DeadNodes dead_;
    std::vector<std::uint64_t> words_;
    DirectoryStation station_{shape_, NodeId{0}, dead_};
};

TEST_F(Station, grants_a_page_with_sharers_of_every_word) {
    for (const std::uint32_t rank : {1u, 63u, 64u, 127u, 128u}) ask(rank);
    const RankSet sharers = sharers_for(3);
    for (std::uint32_t rank = 0; rank < shape_.nodes; ++rank) {
        constexpr std::uint32_t wanted[] = {1, 63, 64, 127, 128, 129};
        EXPECT_EQ(sharers.contains(rank), std::ranges::count(wanted, rank) == 1) << rank;
    }
}

TEST_F(Station, keeps_neighbouring_pages_apart) {
    station_.publish({.first = page_ + 1, .pages = 1, .bytes = 4096, .kind = 2, .rank = 65});
    ask(128);
    const std::uint64_t words[] = {page_ + 1};
    const auto messages = station_.claimed(NodeId{2}, 9, words);
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(PageWord::unpack(messages[0].words[1]).owner, 65u);
    EXPECT_EQ(messages[0].words[2], 0u);
    EXPECT_EQ(messages[0].words[3], rank_bit(65));
    EXPECT_EQ(messages[0].words[4], 0u);
}

// The mover hears of a node that asks for a page that moves. That node is a sharer for the next
// mover too, which stood in the queue before it.
TEST_F(Station, lets_who_asks_for_a_moving_page_join_the_move) {
    sharers_for(3);
    const std::uint64_t claims[] = {page_};
    EXPECT_TRUE(station_.claimed(NodeId{4}, 8, claims).empty());
    const std::uint64_t asks[] = {tagged(page_, 5)};
    const auto messages = station_.asked(NodeId{70}, 0, asks);
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(messages[0].kind, SpaceMessageKind::join);
    EXPECT_EQ(messages[0].to.value, 3u);
    EXPECT_EQ(messages[0].words, std::vector{tagged(page_, 70)});
    PageWord moved;
    moved.live = true;
    moved.owner = 3;
    moved.version = 2;
    const std::uint64_t commits[] = {page_, moved.pack()};
    const auto granted = station_.committed(commits);
    ASSERT_EQ(granted.size(), 1u);
    EXPECT_EQ(granted[0].to.value, 4u);
    EXPECT_NE(granted[0].words[2 + rank_word(70)] & rank_bit(70), 0u);
}

// A rank that asks while the page is being allocated enters itself, then sees it live.
TEST_F(Station, forgets_no_sharer_when_a_page_is_allocated) {
    ask(70);
    station_.publish({.first = page_, .pages = 1, .bytes = 4096, .kind = 2, .rank = 129});
    EXPECT_TRUE(sharers_for(3).contains(70));
}

}  // namespace
}  // namespace hiroba::gas
