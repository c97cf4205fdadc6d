// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/invalidation.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

constexpr std::size_t block_bytes = 4096;

AddressRange range_of(BlockId block) { return {0x10'0000 + block * block_bytes, block_bytes}; }

TEST(Invalidation, blocks_next_to_each_other_are_one_range) {
    Invalidation stale;
    for (const BlockId block : {4u, 5u, 6u, 9u}) stale.add(block, range_of(block));
    ASSERT_EQ(stale.ranges().size(), 2u);
    EXPECT_EQ(stale.ranges()[0].address, range_of(4).address);
    EXPECT_EQ(stale.ranges()[0].bytes, 3 * block_bytes);
    EXPECT_EQ(stale.blocks().size(), 4u);
}

TEST(Invalidation, what_is_inaccessible_already_has_no_range) {
    Invalidation stale;
    stale.add(4, {});
    EXPECT_TRUE(stale.ranges().empty());
    EXPECT_FALSE(stale.is_empty());
    stale.clear();
    EXPECT_TRUE(stale.is_empty());
}

TEST(Invalidation, it_is_full_before_it_would_have_to_allocate) {
    Invalidation stale;
    const AddressRange* const first = (stale.add(0, range_of(0)), stale.ranges().data());
    BlockId block = 0;
    while (!stale.is_full()) block += 2, stale.add(block, range_of(block));
    EXPECT_EQ(stale.blocks().size(), Invalidation::blocks_max);
    EXPECT_EQ(stale.ranges().data(), first);
}

}  // namespace
}  // namespace hiroba::dsm
