// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/known_news.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace hiroba::dsm {
namespace {

constexpr std::uint32_t nodes = 3;

MemoryOptions options(std::uint32_t notices_max) {
    MemoryOptions options;
    options.notices_max = notices_max;
    return options;
}

/// What one node knows, and what an acquire there would take.
struct Knower {
    explicit Knower(std::uint32_t rank, std::uint32_t most = 4) : self{rank}, notices_max(most) {}

    NodeId self;
    std::uint32_t notices_max;
    OwnReleases releases;
    Statistics statistics{false};
    KnownNews news{self, nodes, options(notices_max), releases, statistics};
    LearnedNews& learned = news.learned();
    NeededReleases needed{nodes};
    AcquiredReleases acquired{nodes};
    std::vector<Notice> taken = std::vector<Notice>(100);
    std::array<ReleaseNumber, nodes> applied{};
    std::vector<std::byte> buffer =
        std::vector<std::byte>(KnownNews::bytes_max(nodes, options(notices_max)));

    void release(std::span<const Notice> notices) {
        releases.begin();
        news.end_release({notices, true}, needed, acquired);
    }
    void tell(Knower& listener) {
        const std::size_t bytes = news.encode_for(listener.self, buffer);
        const NewsView view{self, Bytes{buffer}.first(bytes), nodes};
        if (view.header().count + view.header().clocks > 0)
            listener.learned.learn(self, view, listener.news.least_needed(view.header()));
    }
    /// By a lock, say.
    void hand_to(Knower& listener) {
        const NewsView view{self, Bytes{buffer}.first(news.encode_for_anyone(buffer)), nodes};
        listener.learned.learn(told_by_nobody, view, listener.news.least_needed(view.header()));
    }
    /// Returns how many notices were learned.
    std::size_t acquire() {
        learned.taken();
        const std::size_t count = news.join(taken, applied);
        ReleaseNumber shown = 0;
        if (news.open_need(applied, shown).is_none()) acquired.set_acquired(applied);
        return count;
    }
};

Notice notice(std::uint32_t rank, BlockId block, std::uint64_t wts) {
    return {Timestamp{wts}, Timestamp{wts + 10}, block, NodeId{rank}};
}

TEST(KnownNews, a_peer_is_told_once) {
    Knower writer{0}, reader{1};
    const std::array made{notice(0, 7, 5)};
    writer.release(made);
    writer.tell(reader);
    EXPECT_TRUE(reader.learned.any());
    EXPECT_EQ(reader.acquire(), 1u);
    EXPECT_EQ(reader.taken[0].block, 7u);
    EXPECT_TRUE(reader.acquired.has({NodeId{0}, 1}));
    writer.tell(reader);
    EXPECT_FALSE(reader.learned.any());
}

TEST(KnownNews, what_was_learned_is_handed_on) {
    Knower writer{0}, between{1}, reader{2};
    const std::array made{notice(0, 7, 5)};
    writer.release(made);
    writer.tell(between);
    EXPECT_FALSE(between.news.tells_of({NodeId{0}, 1}));
    EXPECT_TRUE(between.learned.tells_of({NodeId{0}, 1}));
    between.acquire();
    EXPECT_TRUE(between.news.tells_of({NodeId{0}, 1}));
    between.tell(reader);
    EXPECT_EQ(reader.acquire(), 1u);
    EXPECT_TRUE(reader.acquired.has({NodeId{0}, 1}));
}

TEST(KnownNews, what_was_dropped_unsent_is_in_min_wts) {
    Knower writer{0}, reader{1};
    std::vector<Notice> made;
    for (BlockId block = 0; block < 6; ++block) made.push_back(notice(0, 2 * block, 5 + block));
    writer.release(made);
    writer.tell(reader);
    const std::size_t came = reader.acquire();
    EXPECT_LE(came, reader.notices_max);
    EXPECT_GE(reader.news.min_wts(), Timestamp{5 + (6 - came) - 1});
}

TEST(KnownNews, a_release_that_made_nothing_is_told_only_where_it_is_owed) {
    Knower writer{0}, reader{1};
    writer.release({});
    writer.tell(reader);
    EXPECT_FALSE(reader.learned.any());
    writer.releases.owe();
    writer.release({});
    writer.tell(reader);
    EXPECT_TRUE(reader.learned.tells_of({NodeId{0}, 2}));
}

TEST(KnownNews, nothing_is_forgotten_that_some_peer_was_not_told) {
    Knower writer{0}, reader{1}, late{2};
    const std::array first{notice(0, 7, 5)}, second{notice(0, 9, 6)};
    const std::array all{NodeId{1}, NodeId{2}};
    writer.release(first);
    writer.tell(reader);
    writer.tell(late);
    writer.release(second);  // after the barrier's messages
    writer.tell(reader);
    writer.news.everyone_knows_through(all);
    EXPECT_FALSE(writer.news.all_know(1));
    late.acquire();
    writer.tell(late);
    EXPECT_EQ(late.acquire(), 1u);
    EXPECT_EQ(late.taken[0].block, 9u);
    writer.news.everyone_knows_through(all);
    EXPECT_TRUE(writer.news.all_know(2));
    EXPECT_FALSE(writer.news.all_know(3));
}

TEST(KnownNews, what_others_have_acquired_is_asked_for_once_where_it_decides_something) {
    Knower writer{0};
    unsigned asked = 0;
    const auto acquired = [&] { return ++asked, ReleaseNumber{4}; };
    writer.news.ask_if_wanted(2, acquired);
    EXPECT_EQ(asked, 0u);
    EXPECT_FALSE(writer.news.all_know(4));
    writer.news.ask_if_wanted(2, acquired);
    writer.news.ask_if_wanted(2, acquired);
    EXPECT_EQ(asked, 1u);
    EXPECT_TRUE(writer.news.all_know(4));
    EXPECT_FALSE(writer.news.all_know(5));
    for (unsigned release = 0; release < 2; ++release) {
        writer.news.ask_if_wanted(2, acquired);
        EXPECT_EQ(asked, 1u);
        writer.release({});
    }
    writer.news.ask_if_wanted(2, acquired);
    EXPECT_EQ(asked, 2u);
}

/// What `inside`, still at a meeting that told `made`, gets by a lock from behind it.
void come_from_behind(Knower& writer, std::span<const Notice> made, Knower& inside) {
    Knower behind{2, writer.notices_max};
    writer.release(made);
    writer.tell(behind);
    writer.news.everyone_knows_through(std::array{NodeId{2}});
    behind.acquire();
    behind.news.everyone_knows_through({});
    writer.hand_to(inside);
    writer.hand_to(behind);
    behind.acquire();
    EXPECT_EQ(behind.news.min_wts(), Timestamp{});
}

TEST(KnownNews, a_lock_from_behind_a_meeting_tells_a_node_still_there_what_few_notices_told) {
    Knower writer{0, 32}, inside{1, 32};
    const std::array made{notice(0, 7, 5), notice(0, 9, 5)};
    come_from_behind(writer, made, inside);
    EXPECT_EQ(inside.acquire(), 2u);
    EXPECT_EQ(inside.taken[0].block, 7u);
    EXPECT_EQ(inside.news.min_wts(), Timestamp{});
    EXPECT_TRUE(inside.acquired.has({NodeId{0}, 1}));
}

TEST(KnownNews, a_lock_from_behind_a_meeting_tells_a_node_still_there_what_covers_many) {
    Knower writer{0, 32}, inside{1, 32};
    const std::array made{notice(0, 7, 5), notice(0, 9, 5), notice(0, 11, 5)};
    come_from_behind(writer, made, inside);
    EXPECT_EQ(inside.acquire(), 0u);
    EXPECT_GE(inside.news.min_wts(), Timestamp{5});
    EXPECT_TRUE(inside.acquired.has({NodeId{0}, 1}));
}

TEST(KnownNews, what_a_meeting_told_is_told_again_until_all_have_acquired_what_came_behind_it) {
    for (const std::uint32_t notices_max : {32u, 4u}) {
        Knower writer{0, notices_max};
        const auto meet = [&](std::uint64_t wts) {
            const std::array made{notice(0, 7, wts)};
            writer.release(made);
            for (const std::uint32_t peer : {1u, 2u}) {
                Knower told{peer, notices_max};
                writer.tell(told);
            }
            writer.news.everyone_knows_through({});
        };
        const auto tells_again = [&] {
            Knower inside{1, notices_max};
            writer.hand_to(inside);
            return inside.acquire() > 0 || inside.news.min_wts() > Timestamp{};
        };
        meet(5);
        for (unsigned asked = 0; asked < 2; ++asked) {
            EXPECT_TRUE(tells_again());
            writer.release({});
            writer.news.ask_soon();
            writer.news.ask_if_wanted(0, [] { return ReleaseNumber{2}; });
        }
        EXPECT_FALSE(tells_again());
        meet(9);
        EXPECT_TRUE(tells_again());
        writer.news.everyone_knows_through({});
        EXPECT_FALSE(tells_again());
    }
}

TEST(KnownNews, a_meeting_without_news_counts_too) {
    Knower writer{0}, reader{1};
    const std::array made{notice(0, 7, 5)};
    writer.news.everyone_knows_through({});
    reader.news.everyone_knows_through({});
    Knower third{2};
    writer.release(made);
    writer.tell(third);
    writer.news.everyone_knows_through(std::array{NodeId{2}});
    writer.hand_to(reader);
    reader.acquire();
    EXPECT_GE(reader.news.min_wts(), Timestamp{5});
}

TEST(KnownNews, bytes_of_a_release_that_is_not_acquired_open_a_need) {
    Knower writer{1};
    writer.needed.note_any();
    writer.needed.note({NodeId{2}, 3});
    writer.release({});
    EXPECT_TRUE(writer.news.needs_open());
    EXPECT_FALSE(writer.needed.any());
    ReleaseNumber shown = 0;
    EXPECT_EQ(writer.news.open_need(writer.applied, shown), (Stamp{NodeId{2}, 3}));
    writer.applied[2] = 3;
    EXPECT_TRUE(writer.news.open_need(writer.applied, shown).is_none());
    EXPECT_FALSE(writer.news.needs_open());
    EXPECT_EQ(shown, 1u);
}

}  // namespace
}  // namespace hiroba::dsm
