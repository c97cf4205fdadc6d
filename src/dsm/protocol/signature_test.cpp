// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/protocol/signature.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace hiroba::dsm {
namespace {

struct Held {
    explicit Held(std::size_t capacity)
        : entries(Signature::entries_for(capacity)),
          index(Signature::index_slots(capacity)),
          signature(capacity, entries, index) {}
    std::vector<Signature::Entry> entries;
    std::vector<std::uint32_t> index;
    Signature signature;

    std::vector<Notice> since(NewsSequence sequence) {
        std::vector<Notice> notices;
        signature.since(sequence, [&](const Notice& n) { notices.push_back(n); });
        return notices;
    }
};

Notice notice(BlockId block, std::uint64_t wts, std::uint32_t node = 1) {
    return {Timestamp{wts}, Timestamp{wts + 10}, block, NodeId{node}};
}

TEST(Signature, keeps_the_newest_notice_of_each_block) {
    Held held{8};
    EXPECT_TRUE(held.signature.add(notice(3, 5), 0));
    EXPECT_TRUE(held.signature.add(notice(3, 9), 0));
    EXPECT_FALSE(held.signature.add(notice(3, 7), 0));
    const auto all = held.since(0);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].wts, Timestamp{9});
}

TEST(Signature, too_many_notices_are_dropped_oldest_write_first_and_covered_by_min_wts) {
    Held held{4};
    for (const std::uint64_t wts : {50, 10, 40, 20, 30, 60}) {
        held.signature.add(notice(static_cast<BlockId>(wts), wts), 0);
    }
    EXPECT_EQ(held.signature.trim(0), 2u);
    EXPECT_EQ(held.signature.min_wts(), Timestamp{20});
    EXPECT_EQ(held.signature.live(), 4u);
    for (const Notice& n : held.since(0)) EXPECT_GT(n.wts, Timestamp{20});
}

TEST(Signature, what_all_know_is_dropped_for_nothing) {
    Held held{2};
    for (BlockId block = 0; block < 4; ++block) held.signature.add(notice(block, block + 1), 0);
    EXPECT_EQ(held.signature.trim(2), 0u);
    EXPECT_EQ(held.signature.min_wts(), Timestamp{0});
    EXPECT_EQ(held.since(0).size(), 2u);
}

TEST(Signature, news_since_a_sequence_are_the_later_ones_in_order) {
    Held held{8};
    held.signature.add(notice(1, 1), 0);
    held.signature.add(notice(2, 2), 0);
    const NewsSequence seen = held.signature.last_sequence();
    held.signature.add(notice(3, 3), 0);
    held.signature.add(notice(1, 4), 0);
    const auto news = held.since(seen);
    ASSERT_EQ(news.size(), 2u);
    EXPECT_EQ(news[0].block, 3u);
    EXPECT_EQ(news[1].block, 1u);
}

// Model: every notice ever added is either the one kept for its block, or older than the one kept,
// or known to all, or covered by min_wts.
// (invariant 5)
TEST(Signature, never_loses_a_write_that_min_wts_does_not_cover) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random{seed};
        const std::size_t capacity = 1 + random() % 6;
        Held held{capacity};
        std::map<BlockId, Notice> newest;  // not yet known to all
        std::uint64_t clock = 1;
        for (int i = 0; i < 400; ++i) {
            const std::uint64_t what = random() % 20;
            if (what == 0) {
                held.signature.forget_all();
                newest.clear();
            } else if (what == 1) {
                held.signature.trim(0);
                ASSERT_LE(held.signature.live(), capacity) << "seed " << seed;
            } else {
                clock += random() % 3;
                const Notice n = notice(static_cast<BlockId>(random() % 12), clock);
                held.signature.add(n, 0);
                auto& known = newest[n.block];
                if (known.wts < n.wts) known = n;
            }
            const auto kept = held.since(0);
            for (const auto& entry : newest) {
                const Notice& n = entry.second;
                const bool here = std::any_of(kept.begin(), kept.end(), [&](const Notice& k) {
                    return k.block == n.block && k.wts >= n.wts;
                });
                ASSERT_TRUE(here || n.wts <= held.signature.min_wts())
                    << "seed " << seed << " step " << i << " block " << n.block;
            }
        }
    }
}

}  // namespace
}  // namespace hiroba::dsm
