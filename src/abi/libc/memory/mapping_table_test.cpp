// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/memory/mapping_table.hpp"

#include <gtest/gtest.h>

namespace hiroba::abi {
namespace {

template <class... Address>
std::vector<MappingTable::Empty> gone(Address... address) {
    return {MappingTable::Empty{static_cast<std::uintptr_t>(address), false}...};
}

TEST(MappingTable, a_block_is_free_when_its_last_part_is_unmapped) {
    MappingTable table;
    table.add({0x10000, 0x5000}, false);

    EXPECT_EQ(table.remove({0x10000, 0x1000}), gone());
    EXPECT_EQ(table.remove({0x14000, 0x1000}), gone());
    EXPECT_FALSE(table.is_whole(0x12000));
    EXPECT_EQ(table.remove({0x12000, 0x1000}), gone());
    EXPECT_EQ(table.remove({0x11000, 0x3000}), gone(0x10000));
    EXPECT_FALSE(table.block_of(0x12000));
}

TEST(MappingTable, unmapping_twice_counts_once) {
    MappingTable table;
    table.add({0x10000, 0x2000}, false);
    EXPECT_EQ(table.remove({0x10000, 0x1000}), gone());
    EXPECT_EQ(table.remove({0x10000, 0x1000}), gone());
    EXPECT_EQ(table.remove({0x11000, 0x1000}), gone(0x10000));
}

TEST(MappingTable, one_call_unmaps_several_blocks) {
    MappingTable table;
    table.add({0x10000, 0x2000}, false);
    table.add({0x12000, 0x2000}, false);
    table.add({0x14000, 0x2000}, false);
    EXPECT_EQ(table.remove({0x11000, 0x4000}), gone(0x12000));
    EXPECT_EQ(table.remove({0x10000, 0x6000}), gone(0x10000, 0x14000));
}

TEST(MappingTable, a_part_mapped_again_must_be_unmapped_again) {
    MappingTable table;
    table.add({0x10000, 0x3000}, false);
    table.remove({0x11000, 0x1000});
    EXPECT_TRUE(table.add_part({0x11000, 0x1000}));
    EXPECT_TRUE(table.is_whole(0x10000));
    EXPECT_EQ(table.remove({0x10000, 0x1000}), gone());
    EXPECT_EQ(table.remove({0x12000, 0x1000}), gone());
    EXPECT_EQ(table.remove({0x11000, 0x1000}), gone(0x10000));
    EXPECT_FALSE(table.add_part({0x11000, 0x1000}));
}

TEST(MappingTable, a_block_freed_elsewhere_gives_way_to_its_successor) {
    MappingTable table;
    table.add({0x10000, 0x4000}, true);
    table.add({0x12000, 0x4000}, false);
    EXPECT_FALSE(table.shows_file(0x12000));
    EXPECT_FALSE(table.block_of(0x10000));
    EXPECT_EQ(table.remove({0x12000, 0x4000}), gone(0x12000));
}

TEST(MappingTable, a_block_grows_and_shrinks) {
    MappingTable table;
    table.add({0x10000, 0x2000}, false);
    table.set_bytes(0x10000, 0x5000);
    EXPECT_EQ(table.block_of(0x14000)->bytes, 0x5000u);
    EXPECT_TRUE(table.is_whole(0x10000));
    table.set_bytes(0x10000, 0x1000);
    EXPECT_FALSE(table.block_of(0x11000));
    EXPECT_EQ(table.remove({0x10000, 0x1000}), gone(0x10000));
}

TEST(MappingTable, tells_reserved_blocks_when_they_go) {
    MappingTable table;
    table.add({0x10000, 0x4000}, false, true);
    EXPECT_TRUE(table.is_reserved(0x12000));
    EXPECT_FALSE(table.is_reserved(0x14000));
    const std::vector<MappingTable::Empty> all{{0x10000, true}};
    EXPECT_EQ(table.remove({0x10000, 0x4000}), all);
}

}  // namespace
}  // namespace hiroba::abi
