// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/memory/early_mappings.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace hiroba::abi {
namespace {

constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr int both = PROT_READ | PROT_WRITE;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Each test has the range for itself.
class EarlyMappingsTest : public testing::Test {
protected:
    ~EarlyMappingsTest() override {
        munmap(reinterpret_cast<void*>(EarlyMappings::base), EarlyMappings::bytes_max);
    }
    EarlyMappings early_;
};

TEST_F(EarlyMappingsTest, hand_out_addresses_that_rise) {
    auto* const first = static_cast<char*>(early_.map(5000, both, kind));
    auto* const second = static_cast<char*>(early_.map(std::size_t{3} << 20, both, kind));
    EXPECT_EQ(number(first), EarlyMappings::base);
    EXPECT_EQ(number(second), EarlyMappings::base + (std::size_t{2} << 20));
    first[8191] = second[0] = 1;
    EXPECT_TRUE(EarlyMappings::owns(second));
    EXPECT_FALSE(EarlyMappings::owns(&early_));
}

TEST_F(EarlyMappingsTest, refuse_what_is_larger_than_the_range) {
    EXPECT_EQ(early_.map(EarlyMappings::bytes_max + 1, both, kind), MAP_FAILED);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(early_.map(0, both, kind), MAP_FAILED);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(EarlyMappingsTest, refuse_to_map_over_what_lies_there) {
    void* const other = mmap(reinterpret_cast<void*>(EarlyMappings::base + 4096), 4096, both,
                             kind | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_NE(other, MAP_FAILED);
    EXPECT_EQ(early_.map(8192, both, kind), MAP_FAILED);
    EXPECT_EQ(errno, EEXIST);
}

TEST_F(EarlyMappingsTest, unmap_within_what_was_mapped) {
    auto* const at = static_cast<char*>(early_.map(8192, both, kind));
    EXPECT_EQ(early_.unmap(at + 4096, 8192), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(early_.unmap(at, 4096), 0);
    at[4096] = 1;
    EXPECT_EXIT(at[0] = 1, testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(EarlyMappingsTest, announce_nothing_where_nothing_was_mapped) {
    EXPECT_EQ(early_.announce().bytes, 0u);
    EXPECT_EQ(early_.map(4096, both, kind), MAP_FAILED);
}

TEST_F(EarlyMappingsTest, of_node_0_can_be_read_as_a_whole) {
    auto* const at = static_cast<char*>(early_.map(8192, PROT_NONE, kind));
    early_.unmap(at + 4096, 4096);
    const dsm::AddressRange range = early_.announce();
    EXPECT_EQ(range.address, EarlyMappings::base);
    EXPECT_GE(range.bytes, 8192 + EarlyMappings::spare_bytes);
    void* const between = early_.map(4096, both, kind);
    ASSERT_EQ(early_.give_over(range, true), 0);
    for (std::size_t i = 0; i < range.bytes; i += page_bytes) EXPECT_EQ(at[i], 0);
    EXPECT_EQ(number(between), number(at) + 8192);
    EXPECT_EQ(number(early_.map(4096, both, kind)), number(at) + 12288);
    EXPECT_EQ(early_.map(2 * EarlyMappings::spare_bytes, both, kind), MAP_FAILED);
}

TEST_F(EarlyMappingsTest, of_others_hold_the_addresses_of_node_0) {
    early_.map(4096, both, kind);
    early_.announce();
    ASSERT_EQ(early_.give_over({EarlyMappings::base, std::size_t{1} << 20}, false), 0);
    EXPECT_EQ(mmap(reinterpret_cast<void*>(EarlyMappings::base + 8192), 4096, both,
                   kind | MAP_FIXED_NOREPLACE, -1, 0),
              MAP_FAILED);
    EXPECT_EQ(early_.map(4096, both, kind), MAP_FAILED);
}

TEST_F(EarlyMappingsTest, of_others_tell_what_lies_in_the_way) {
    early_.announce();
    mmap(reinterpret_cast<void*>(EarlyMappings::base + 8192), 4096, both,
         kind | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_EQ(early_.give_over({EarlyMappings::base, std::size_t{1} << 20}, false), EEXIST);
}

}  // namespace
}  // namespace hiroba::abi
