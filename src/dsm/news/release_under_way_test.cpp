// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/release_under_way.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace hiroba::dsm {
namespace {

constexpr NodeId self{0};

class UnderWay : public testing::Test {
protected:
    ReleaseUnderWay release_{2, 16};
    std::array<BlockEntry, 16> entries_;

    void SetUp() override { release_.begin(); }
    void gather(const std::vector<BlockId>& written) {
        release_.gather([&] {
            for (const BlockId block : written) release_.add_written(block);
        });
    }
    std::vector<BlockId> work() {
        const std::span<const BlockId> blocks = release_.work();
        return {blocks.begin(), blocks.end()};
    }
    bool merge(BlockId block, std::uint64_t wts) {
        return release_.note_made({Timestamp{wts}, Timestamp{wts + 10}, block, self});
    }
};

TEST_F(UnderWay, what_is_reported_comes_before_what_was_remembered) {
    release_.unmerged().put(entries_[3], 3);
    gather({7, 7, 8});
    EXPECT_EQ(work(), (std::vector<BlockId>{7, 8, 3}));
    EXPECT_TRUE(release_.is_reported(1));
    EXPECT_FALSE(release_.is_reported(2));
    EXPECT_FALSE(release_.unmerged().any());
}

TEST_F(UnderWay, what_is_kept_of_the_work_is_reported_no_more) {
    gather({1, 2, 3});
    release_.keep_of_work([](std::size_t at, BlockId block) { return at != 1 && block != 1; });
    EXPECT_EQ(work(), std::vector<BlockId>{3});
    EXPECT_FALSE(release_.is_reported(0));
}

TEST_F(UnderWay, blocks_in_a_row_of_one_time_are_one_notice) {
    EXPECT_TRUE(merge(4, 20));
    EXPECT_FALSE(merge(5, 20));
    EXPECT_TRUE(merge(6, 21));  // later
    EXPECT_TRUE(merge(8, 21));  // not behind it
    EXPECT_EQ(release_.merged(), 4u);
    ASSERT_EQ(release_.made().notices.size(), 3u);
    EXPECT_EQ(release_.made().notices[0].count, 2u);
}

TEST_F(UnderWay, merges_are_at_one_time_unless_a_reader_forces_a_later_one) {
    EXPECT_EQ(release_.time_of_merge(Timestamp{20}), Timestamp{20});
    EXPECT_EQ(release_.time_of_merge(Timestamp{12}), Timestamp{20});
    EXPECT_EQ(release_.time_of_merge(Timestamp{31}), Timestamp{31});
}

TEST_F(UnderWay, the_next_release_begins_with_nothing) {
    gather({1});
    release_.note_work_done();
    merge(1, 20);
    EXPECT_TRUE(release_.made().had_work);
    const ReleaseNumber before = release_.number();
    release_.begin();
    EXPECT_EQ(release_.number(), before + 1);
    EXPECT_FALSE(release_.made().had_work);
    EXPECT_TRUE(release_.made().notices.empty());
    EXPECT_EQ(release_.merged(), 0u);
    EXPECT_EQ(release_.time_of_merge(Timestamp{12}), Timestamp{12});
}

}  // namespace
}  // namespace hiroba::dsm
