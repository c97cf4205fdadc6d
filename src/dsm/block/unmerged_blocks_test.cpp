// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/unmerged_blocks.hpp"

#include <gtest/gtest.h>

#include <array>

namespace hiroba::dsm {
namespace {

TEST(UnmergedBlocks, a_block_is_listed_once_until_it_is_taken) {
    UnmergedBlocks unmerged{4};
    std::array<BlockEntry, 4> entries;
    std::array<BlockId, 4> taken{};
    EXPECT_FALSE(unmerged.any());
    EXPECT_EQ(unmerged.take(taken.data()), 0u);
    for (const BlockId block : {2u, 0u, 2u}) unmerged.put(entries[block], block);
    EXPECT_TRUE(unmerged.any());
    ASSERT_EQ(unmerged.take(taken.data()), 2u);
    EXPECT_EQ(taken[0], 2u);
    EXPECT_EQ(taken[1], 0u);
    EXPECT_FALSE(unmerged.any());
    entries[2].unmerged = false;  // as the release does that looks at it
    unmerged.put(entries[2], 2);
    EXPECT_EQ(unmerged.take(taken.data()), 1u);
}

}  // namespace
}  // namespace hiroba::dsm
