// SPDX-License-Identifier: BSD-3-Clause
// Role: the layout of the offset space, forwards and backwards.
#include "dsm/memory/address_map.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

constexpr SpaceShape shape{.nodes = 3,
                           .threads_per_node = 2,
                           .stack_bytes = 1 << 20,
                           .early_bytes = 1 << 20,
                           .heap_bytes = 1 << 24,
                           .block_bytes = 16384};

TEST(address_map, parts_follow_each_other_without_gaps_or_overlaps) {
    const AddressMap map{shape};
    std::uintptr_t at = AddressMap::main_base;
    for (std::uint32_t thread = 0; thread < 6; ++thread) {
        EXPECT_EQ(map.stack_slice(thread).address, at);
        at = map.stack_slice(thread).end();
    }
    EXPECT_EQ(map.early_arena().address, at);
    at = map.early_arena().end();
    for (std::uint32_t node = 0; node < 3; ++node) {
        EXPECT_EQ(map.heap_arena(NodeId{node}).address, at);
        at = map.heap_arena(NodeId{node}).end();
    }
    EXPECT_EQ(map.main_range().end(), at);
}

TEST(address_map, offsets_and_addresses_are_inverse_and_images_start_on_blocks) {
    AddressMap map{shape};
    // Added in an order that is not that of their addresses.
    ASSERT_TRUE(map.add_image({0x7fff'f000'1000, 5 * page_bytes}));
    ASSERT_TRUE(map.add_image({0x5555'5555'3000, page_bytes}));
    ASSERT_TRUE(map.add_image({0x7fff'f000'6000, 2 * page_bytes}));

    for (std::size_t i = 0; i < map.images(); ++i) {
        const AddressRange image = map.image(i);
        EXPECT_EQ(*map.offset_of(image.address) % shape.block_bytes, 0u);
        for (const std::uintptr_t at : {image.address, image.end() - 1}) {
            ASSERT_TRUE(map.offset_of(at));
            EXPECT_EQ(map.address_of(*map.offset_of(at)), at);
            EXPECT_LT(*map.offset_of(at), map.space_bytes());
        }
    }
    EXPECT_FALSE(map.offset_of(0x7fff'f000'0fff));
    EXPECT_FALSE(map.offset_of(0x7fff'f000'8000));
    EXPECT_FALSE(map.offset_of(0x1000));
    EXPECT_EQ(*map.offset_of(AddressMap::main_base + 12345), 12345u);
}

TEST(address_map, padding_behind_an_image_has_no_address_and_ends_the_extent) {
    AddressMap map{shape};
    ASSERT_TRUE(map.add_image({0x5555'5555'3000, 5 * page_bytes}));
    const std::uint64_t offset = *map.offset_of(0x5555'5555'3000);
    EXPECT_EQ(map.extent_left(offset + 4 * page_bytes, shape.block_bytes), page_bytes);
    EXPECT_EQ(map.extent_left(offset, shape.block_bytes), shape.block_bytes);
    EXPECT_EQ(map.address_of(offset + 5 * page_bytes), 0u);
    EXPECT_EQ(map.extent_left(offset + 5 * page_bytes, shape.block_bytes), 0u);
    EXPECT_EQ(map.extent_left(map.main_range().bytes - 10, 4096), 10u);
}

TEST(address_map, the_first_home_is_the_node_that_owns_the_part) {
    AddressMap map{shape};
    ASSERT_TRUE(map.add_image({0x5555'5555'3000, page_bytes}));
    const auto home = [&](std::uintptr_t at) { return map.initial_home(*map.offset_of(at)).value; };
    for (std::uint32_t thread = 0; thread < 6; ++thread) {
        EXPECT_EQ(home(map.stack_slice(thread).address), thread / 2);
        EXPECT_EQ(home(map.stack_slice(thread).end() - 1), thread / 2);
    }
    for (std::uint32_t node = 0; node < 3; ++node)
        EXPECT_EQ(home(map.heap_arena(NodeId{node}).end() - 1), node);
    EXPECT_EQ(home(map.early_arena().address), 0u);
    EXPECT_EQ(home(0x5555'5555'3000), 0u);
}

TEST(address_map, sizes_are_rounded_up_to_whole_blocks) {
    const AddressMap map{
        {.stack_bytes = 5000, .early_bytes = 1, .heap_bytes = 70000, .block_bytes = 65536}};
    EXPECT_EQ(map.shape().stack_bytes, 65536u);
    EXPECT_EQ(map.shape().early_bytes, 65536u);
    EXPECT_EQ(map.shape().heap_bytes, 131072u);
}

TEST(address_map, images_that_do_not_fit_are_refused) {
    AddressMap map{shape};
    EXPECT_FALSE(map.add_image({0x5555'5555'3001, page_bytes}));
    EXPECT_FALSE(map.add_image({0x5555'5555'3000, 100}));
    EXPECT_FALSE(map.add_image({AddressMap::main_base + page_bytes, page_bytes}));
    EXPECT_FALSE(map.add_image({0x5555'5555'3000, AddressMap::image_space_bytes + page_bytes}));
    ASSERT_TRUE(map.add_image({0x5555'5555'3000, 4 * page_bytes}));
    EXPECT_FALSE(map.add_image({0x5555'5555'6000, page_bytes})) << "overlaps";
    for (std::size_t i = 1; i < AddressMap::images_max; ++i)
        ASSERT_TRUE(map.add_image({0x6000'0000'0000 + i * page_bytes, page_bytes}));
    EXPECT_FALSE(map.add_image({0x7000'0000'0000, page_bytes})) << "one too many";
}

}  // namespace
}  // namespace hiroba::dsm
