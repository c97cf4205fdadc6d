// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/read_below.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

std::uint32_t window_of(ReadBelow& below, BlockId block) {
    const std::uint32_t window = below.missed(block);
    below.brought(block, window);
    return window;
}

TEST(ReadBelow, misses_below_each_other_double_the_window_up_to_its_limit) {
    ReadBelow below;
    BlockId block = 1'000;
    for (const std::uint32_t wanted : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 64u}) {
        const std::uint32_t window = window_of(below, block);
        EXPECT_EQ(window, wanted);
        block -= window + 1;
    }
}

TEST(ReadBelow, other_misses_bring_nothing) {
    ReadBelow below;
    for (const BlockId block : {100u, 50u, 90u, 7u, 8u, 9u, 10u})
        EXPECT_EQ(window_of(below, block), 0u);
}

TEST(ReadBelow, what_did_not_come_begins_anew) {
    ReadBelow below;
    below.brought(500, 32);
    EXPECT_EQ(below.missed(467), 64u);
    below.brought(467, 0);
    EXPECT_EQ(below.missed(466), 1u);
}

TEST(ReadBelow, brings_no_more_than_there_is) {
    ReadBelow below;
    below.brought(50, 20);
    EXPECT_EQ(below.missed(29), 29u);
    below.brought(29, 29);
    for (const BlockId block : {0u, 1u, 29u}) EXPECT_EQ(below.missed(block), 0u);
}

TEST(ReadBelow, several_runs_go_on_beside_each_other) {
    ReadBelow below;
    BlockId first = 10'000, second = 20'000;
    for (const std::uint32_t wanted : {0u, 1u, 2u, 4u, 8u}) {
        EXPECT_EQ(window_of(below, first), wanted);
        EXPECT_EQ(window_of(below, second), wanted);
        first -= wanted + 1;
        second -= wanted + 1;
    }
}

}  // namespace
}  // namespace hiroba::dsm
