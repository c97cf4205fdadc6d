// SPDX-License-Identifier: BSD-3-Clause
#include "acp/heap_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace hiroba::acp {
namespace {

constexpr std::uint64_t first = 0x8'0000'1000;

TEST(HeapBlocks, GivesNothingBeforeItHasAnything) {
    HeapBlocks blocks;
    EXPECT_EQ(blocks.take(1), 0u);
    EXPECT_FALSE(blocks.give(first));
}

TEST(HeapBlocks, PartsThatAdjoinAreOneAgainWhicheverIsGivenFirst) {
    for (const int order : {0, 1, 2, 3, 4, 5}) {
        HeapBlocks blocks;
        blocks.add(first, 96);
        std::uint64_t all[] = {blocks.take(32), blocks.take(32), blocks.take(32)};
        EXPECT_EQ(blocks.take(1), 0u);
        int which[] = {0, 1, 2};
        for (int step = 0; step < order; ++step) std::next_permutation(which, which + 3);
        for (const int one : which) EXPECT_TRUE(blocks.give(all[one]));
        EXPECT_EQ(blocks.take(96), first);
    }
}

TEST(HeapBlocks, TellsABlockFromAnAddressInsideOneAndFromOneGivenBack) {
    HeapBlocks blocks;
    blocks.add(first, 4096);
    const std::uint64_t block = blocks.take(100);
    EXPECT_FALSE(blocks.give(block + 16));
    EXPECT_TRUE(blocks.give(block));
    EXPECT_FALSE(blocks.give(block));
}

TEST(HeapBlocks, SizesNearTheEndOfNumbersFitNowhere) {
    HeapBlocks blocks;
    blocks.add(first, 1 << 20);
    for (std::uint64_t less = 0; less < 40; ++less)
        EXPECT_EQ(blocks.take(~std::uint64_t{0} - less), 0u);
    EXPECT_EQ(blocks.take(0), first);
}

TEST(HeapBlocks, BlocksNeverOverlapAndAllComesBack) {
    HeapBlocks blocks;
    blocks.add(first + 3, 100'000);       // rounded inwards
    blocks.add(first + 200'000, 50'000);  // apart
    std::mt19937 random(7);
    std::map<std::uint64_t, std::uint64_t> mine;
    for (int step = 0; step < 20'000; ++step) {
        if (random() % 2 == 0) {
            const std::uint64_t bytes = random() % 2000;
            const std::uint64_t block = blocks.take(bytes);
            if (block == 0) continue;
            ASSERT_EQ(block % HeapBlocks::alignment, 0u);
            const auto after = mine.lower_bound(block);
            const bool is_apart_from_next = after == mine.end() || block + bytes <= after->first;
            ASSERT_TRUE(is_apart_from_next);
            const bool is_apart_from_last =
                after == mine.begin() ||
                std::prev(after)->first + std::prev(after)->second <= block;
            ASSERT_TRUE(is_apart_from_last);
            mine.emplace(block, bytes);
        } else if (!mine.empty()) {
            auto one = mine.begin();
            std::advance(one, random() % mine.size());
            ASSERT_TRUE(blocks.give(one->first));
            mine.erase(one);
        }
    }
    for (const auto& [block, bytes] : mine) ASSERT_TRUE(blocks.give(block));
    EXPECT_EQ(blocks.taken_bytes(), 0u);
    EXPECT_NE(blocks.take(99'900), 0u);
    EXPECT_NE(blocks.take(49'900), 0u);
}

}  // namespace
}  // namespace hiroba::acp
