// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/races/early_blocks.hpp"

#include <gtest/gtest.h>

#include <array>

namespace hiroba::dsm {
namespace {

using Use = EarlyBlock::Use;
constexpr NodeId self{0}, other{1};

class Early : public testing::Test {
protected:
    KnownEpochs epochs_{2, self};
    std::array<BlockEntry, 100> entries_;
    EarlyBlocks early_{epochs_, entries_.size()};

    void bring(BlockId block, Epoch epoch) {
        early_.note_brought(entries_[block], block, {other, epoch});
    }
};

TEST_F(Early, only_what_the_program_has_not_heard_of_is_early) {
    epochs_.raise(other, 3);
    bring(5, 2);
    EXPECT_FALSE(entries_[5].early);
    bring(5, 3);
    EXPECT_TRUE(entries_[5].early);
    EXPECT_TRUE(early_.is_still(entries_[5], 5));
    epochs_.raise(other, 4);
    EXPECT_FALSE(early_.is_still(entries_[5], 5));
    EXPECT_FALSE(entries_[5].early);
}

TEST_F(Early, the_first_access_counts_and_no_later_one) {
    bring(5, 3);
    EXPECT_EQ(early_[5].use, Use::none);
    early_.note_first_access(5, 40, true, false);
    early_.note_first_access(5, 80, false, false);
    EXPECT_EQ(early_[5].use, Use::written);
    EXPECT_EQ(early_[5].at, 40u);
}

TEST_F(Early, a_second_version_is_another_unless_the_first_was_never_shown) {
    bring(5, 3);
    entries_[5].brought = true;  // kept away until its release is acquired
    bring(5, 4);
    EXPECT_EQ(early_[5].use, Use::none);
    entries_[5].brought = false;
    early_.note_first_access(5, 8, false, false);
    bring(5, 5);
    EXPECT_EQ(early_[5].use, Use::again);
}

TEST_F(Early, it_is_seen_whether_others_were_here) {
    bring(5, 3);
    EXPECT_TRUE(early_[5].alone);
    EXPECT_FALSE(early_.are_seen_beside(5));
    bring(6, 3);
    EXPECT_FALSE(early_[6].alone);
    EXPECT_TRUE(early_.are_seen_beside(5));
}

TEST_F(Early, the_list_forgets_what_has_no_room) {
    for (BlockId block = 0; block < entries_.size(); ++block) bring(block, 3);
    EarlyBlocks::List listed;
    ASSERT_TRUE(early_.any_listed());
    EXPECT_EQ(early_.take_listed(listed), EarlyBlocks::listed_max);
    EXPECT_EQ(listed.front(), 0u);
    EXPECT_FALSE(early_.any_listed());
    early_.list(77);
    EXPECT_EQ(early_.take_listed(listed), 1u);
    EXPECT_EQ(listed.front(), 77u);
}

}  // namespace
}  // namespace hiroba::dsm
