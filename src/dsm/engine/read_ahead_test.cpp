// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/engine/read_ahead.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

TEST(ReadAhead, scattered_misses_bring_nothing_along) {
    ReadAhead ahead;
    for (const BlockId block : {100u, 50u, 90u, 7u}) {
        EXPECT_EQ(ahead.missed(block), 0u);
        ahead.brought(block, 0);
    }
}

TEST(ReadAhead, misses_in_a_row_double_the_window_up_to_its_limit) {
    ReadAhead ahead;
    BlockId block = 100;
    std::uint32_t window = ahead.missed(block);
    EXPECT_EQ(window, 0u);
    for (const std::uint32_t wanted : {1u, 2u, 4u, 8u, 16u, 32u, 32u}) {
        ahead.brought(block, window);
        block += window + 1;
        window = ahead.missed(block);
        EXPECT_EQ(window, wanted);
    }
}

TEST(ReadAhead, a_jump_starts_again) {
    ReadAhead ahead;
    ahead.brought(100, 16);
    EXPECT_EQ(ahead.missed(500), 0u);
}

}  // namespace
}  // namespace hiroba::dsm
