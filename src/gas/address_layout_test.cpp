// SPDX-License-Identifier: BSD-3-Clause
#include "gas/address_layout.hpp"

#include <gtest/gtest.h>

namespace hiroba::gas {
namespace {

TEST(AddressLayout, HasTheWidthsOfTable3) {
    EXPECT_EQ(AddressLayout(1).segments_end(), std::uint64_t{1} << 22);
    EXPECT_EQ(AddressLayout(32).segments_end(), std::uint64_t{1} << 22);
    EXPECT_EQ(AddressLayout(33).segments_end(), std::uint64_t{1} << 21);
    EXPECT_EQ(AddressLayout(AddressLayout::nodes_max).segments_end(), std::uint64_t{1} << 7);
}

TEST(AddressLayout, TakesApartWhatItPacked) {
    for (const std::uint32_t nodes : {1u, 2u, 32u, 33u, 64u, 1000u, 1u << 20}) {
        const AddressLayout layout(nodes);
        for (const std::uint64_t segment : {std::uint64_t{1}, layout.segments_end() - 1}) {
            const std::uint64_t place = AddressLayout::place_of(segment) + 0x7'ffff'fff8;
            const std::uint64_t address = layout.pack({NodeId{nodes - 1}, 3, place});
            const AddressParts parts = layout.parts(address);
            EXPECT_EQ(parts.node.value, nodes - 1);
            EXPECT_EQ(parts.color, 3u);
            EXPECT_EQ(parts.place, place);
            EXPECT_TRUE(layout.is_address(address));
        }
    }
}

TEST(AddressLayout, KnowsNoNullNoNodeAndNoSegment) {
    const AddressLayout layout(3);
    EXPECT_FALSE(layout.is_address(0));
    EXPECT_FALSE(layout.is_address(AddressLayout::place_of(1) - 1));
    EXPECT_TRUE(layout.is_address(AddressLayout::place_of(1)));
    EXPECT_FALSE(layout.is_address(layout.pack({NodeId{3}, 0, AddressLayout::place_of(1)})));
    EXPECT_FALSE(layout.is_address(~std::uint64_t{0}));
}

}  // namespace
}  // namespace hiroba::gas
