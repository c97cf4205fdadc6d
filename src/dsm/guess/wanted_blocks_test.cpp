// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/wanted_blocks.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace hiroba::dsm {
namespace {

constexpr std::size_t block_count = 100'000;

/// Blocks of a node, all its own but those of `shared`; what is given up is shared from then on.
struct Blocks {
    std::vector<bool> own = std::vector<bool>(block_count, true);
    std::vector<BlockId> given_up;

    WantedBlocks::Given operator()(BlockId first, std::uint32_t count, std::uint32_t most) {
        WantedBlocks::Given done{0, 0};
        for (; done.looked_at < count && done.given_up < std::min(most, WantedBlocks::row_max);
             ++done.looked_at) {
            const BlockId block = first + done.looked_at;
            if (!own[block]) continue;
            own[block] = false;
            given_up.push_back(block);
            ++done.given_up;
        }
        return done;
    }
};

/// Wants blocks in a row until a run has a window of `window`; returns the block wanted last.
BlockId want_run(WantedBlocks& wanted, Blocks& blocks, BlockId block, std::uint32_t window) {
    for (std::uint32_t reached = 0;; reached = 4 * reached + 3) {
        blocks.own[block] = false;
        const std::size_t run = wanted.begin_run(block, block_count);
        if (reached >= window) {
            blocks.given_up.clear();
            wanted.give_part(run, blocks);
            return block;
        }
        wanted.give_part(run, blocks);
        while (wanted.is_any_left()) wanted.give_rests(blocks);
        block += reached + 1;
    }
}

TEST(WantedBlocks, gives_up_a_long_run_in_parts_that_grow) {
    WantedBlocks wanted;
    Blocks blocks;
    const BlockId block = want_run(wanted, blocks, 1'000, 1'023);
    EXPECT_EQ(blocks.given_up.size(), WantedBlocks::part_first);
    for (const std::uint32_t part : {256u, 1'023u - 64u - 256u}) {
        ASSERT_TRUE(wanted.is_any_left());
        EXPECT_EQ(wanted.give_rests(blocks), part);
    }
    EXPECT_FALSE(wanted.is_any_left());
    std::vector<BlockId> all(1'023);
    std::iota(all.begin(), all.end(), block + 1);
    EXPECT_EQ(blocks.given_up, all);
}

TEST(WantedBlocks, what_is_shared_already_counts_for_nothing_and_ends_at_the_reach) {
    WantedBlocks wanted;
    Blocks blocks;
    const BlockId next = 1'000 + 1 + 4 + 16;  // wanted with 63 behind it
    for (BlockId block = next + 1; block < next + 200; ++block) blocks.own[block] = block % 4 == 0;
    const BlockId block = want_run(wanted, blocks, 1'000, 63);
    ASSERT_EQ(block, next);
    EXPECT_EQ(blocks.given_up.size(), 63u);
    for (BlockId at = block + 1; at <= blocks.given_up.back(); ++at) EXPECT_FALSE(blocks.own[at]);
    EXPECT_FALSE(wanted.is_any_left());

    std::fill(blocks.own.begin(), blocks.own.end(), false);
    const std::size_t run = wanted.begin_run(blocks.given_up.back() + 1, block_count);
    EXPECT_EQ(wanted.give_part(run, blocks), 0u);
    EXPECT_FALSE(wanted.is_any_left());
}

TEST(WantedBlocks, goes_on_with_several_runs_and_downwards) {
    WantedBlocks wanted;
    Blocks up, down;
    want_run(wanted, up, 50'000, 1'023);
    BlockId block = 30'000;
    std::size_t run = 0;
    for (const std::uint32_t window : {0u, 0u, 3u, 15u, 63u, 255u}) {
        down.given_up.clear();
        run = wanted.begin_run(block, block_count);
        wanted.give_part(run, down);
        block -= window + 1;
    }
    ASSERT_EQ(down.given_up.size(), WantedBlocks::part_first);
    EXPECT_EQ(*std::min_element(down.given_up.begin(), down.given_up.end()), block + 255 + 1 - 64);
    while (wanted.is_any_left()) {
        wanted.give_rests([&](BlockId first, std::uint32_t count, std::uint32_t most) {
            return (first < 40'000 ? down : up)(first, count, most);
        });
    }
    EXPECT_EQ(up.given_up.size(), 1'023u);
    EXPECT_EQ(down.given_up.size(), 255u);
}

}  // namespace
}  // namespace hiroba::dsm
