// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/moved_blocks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "dsm/test_parts/wire_provider.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t blocks = 20'000;

class Marked : public testing::Test {
protected:
    Marked()
        : endpoint_(net::Endpoint::over(NodeId{0}, 1,
                                        std::make_unique<test::WireProvider>(wire_, NodeId{0}))),
          moved_(*MovedBlocks::allocate(*endpoint_, blocks), blocks, NodeId{0}) {
        moved_.attach();
    }
    std::vector<BlockId> taken() {
        std::vector<BlockId> found;
        moved_.take([&](BlockId block) { found.push_back(block); });
        return found;
    }
    test::Wire wire_{1};
    std::unique_ptr<net::Endpoint> endpoint_;
    MovedBlocks moved_;
};

TEST_F(Marked, blocks_are_found_once_each) {
    const std::vector<BlockId> marked{0, 63, 64, 4095, 4096, 12'345, blocks - 1};
    for (const BlockId block : marked) moved_.mark(NodeId{0}, block);
    moved_.mark(NodeId{0}, 64);
    EXPECT_TRUE(moved_.any());
    EXPECT_EQ(taken(), marked);
    EXPECT_FALSE(moved_.any());
    EXPECT_EQ(taken(), std::vector<BlockId>{});
}

TEST_F(Marked, blocks_of_a_list_of_accesses_are_found) {
    auto list = moved_.accesses(4100);
    gas::Segment::in_order(NodeId{0}, list);
    EXPECT_TRUE(moved_.is_marked(4100));
    EXPECT_EQ(taken(), std::vector<BlockId>{4100});
}

// A thread marks while another takes: none may be lost, however the two meet.
TEST_F(Marked, blocks_are_never_lost_to_a_taker_on_its_way) {
    constexpr unsigned rounds = 200;
    std::vector<unsigned> seen(blocks, 0);
    std::atomic<bool> done{false};
    std::thread marker([&] {
        for (unsigned round = 1; round <= rounds; ++round) {
            for (BlockId block = round % 7; block < blocks; block += 977) {
                moved_.mark(NodeId{0}, block);
            }
        }
        done = true;
    });
    const auto take = [&] { moved_.take([&](BlockId block) { ++seen[block]; }); };
    while (!done) take();
    marker.join();
    take();
    for (BlockId first = 0; first < 7; ++first) {
        for (BlockId block = first; block < blocks; block += 977) EXPECT_GT(seen[block], 0u);
    }
    EXPECT_FALSE(moved_.any());
}

}  // namespace
}  // namespace hiroba::dsm
