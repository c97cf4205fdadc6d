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
    auto* const first = static_cast<char*>(early_.map(nullptr, 5000, both, kind));
    auto* const second = static_cast<char*>(early_.map(nullptr, std::size_t{3} << 20, both, kind));
    EXPECT_EQ(number(first), EarlyMappings::base);
    EXPECT_EQ(number(second), EarlyMappings::base + (std::size_t{2} << 20));
    first[8191] = second[0] = 1;
    EXPECT_TRUE(early_.owns(second));
    EXPECT_FALSE(early_.owns(&early_));
}

TEST_F(EarlyMappingsTest, refuse_what_is_larger_than_the_range) {
    EXPECT_EQ(early_.map(nullptr, EarlyMappings::bytes_max + 1, both, kind), MAP_FAILED);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(early_.map(nullptr, 0, both, kind), MAP_FAILED);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(EarlyMappingsTest, refuse_to_map_over_what_lies_there) {
    void* const other = mmap(reinterpret_cast<void*>(EarlyMappings::base + 4096), 4096, both,
                             kind | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_NE(other, MAP_FAILED);
    EXPECT_EQ(early_.map(nullptr, 8192, both, kind), MAP_FAILED);
    EXPECT_EQ(errno, EEXIST);
}

TEST_F(EarlyMappingsTest, unmap_within_what_was_mapped) {
    auto* const at = static_cast<char*>(early_.map(nullptr, 8192, both, kind));
    EXPECT_EQ(early_.unmap(at + 4096, 8192), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(early_.unmap(at, 4096), 0);
    at[4096] = 1;
    EXPECT_EXIT(at[0] = 1, testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(EarlyMappingsTest, announce_nothing_where_nothing_was_mapped) {
    EXPECT_EQ(early_.announce()[0].bytes, 0u);
    EXPECT_EQ(early_.map(nullptr, 4096, both, kind), MAP_FAILED);
}

TEST_F(EarlyMappingsTest, of_node_0_can_be_read_as_a_whole) {
    auto* const at = static_cast<char*>(early_.map(nullptr, 8192, PROT_NONE, kind));
    early_.unmap(at + 4096, 4096);
    const dsm::AddressRange range = early_.announce()[0];
    EXPECT_EQ(range.address, EarlyMappings::base);
    EXPECT_GE(range.bytes, 8192 + EarlyMappings::spare_bytes);
    void* const between = early_.map(nullptr, 4096, both, kind);
    ASSERT_EQ(early_.give_over(range, true), 0);
    for (std::size_t i = 0; i < range.bytes; i += page_bytes) EXPECT_EQ(at[i], 0);
    EXPECT_EQ(number(between), number(at) + 8192);
    EXPECT_EQ(number(early_.map(nullptr, 4096, both, kind)), number(at) + 12288);
    EXPECT_EQ(early_.map(nullptr, 2 * EarlyMappings::spare_bytes, both, kind), MAP_FAILED);
}

TEST_F(EarlyMappingsTest, of_others_hold_the_addresses_of_node_0) {
    early_.map(nullptr, 4096, both, kind);
    early_.announce();
    ASSERT_EQ(early_.give_over({EarlyMappings::base, std::size_t{1} << 20}, false), 0);
    EXPECT_EQ(mmap(reinterpret_cast<void*>(EarlyMappings::base + 8192), 4096, both,
                   kind | MAP_FIXED_NOREPLACE, -1, 0),
              MAP_FAILED);
    EXPECT_EQ(early_.map(nullptr, 4096, both, kind), MAP_FAILED);
}

TEST_F(EarlyMappingsTest, of_others_tell_what_lies_in_the_way) {
    early_.announce();
    mmap(reinterpret_cast<void*>(EarlyMappings::base + 8192), 4096, both,
         kind | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_EQ(early_.give_over({EarlyMappings::base, std::size_t{1} << 20}, false), EEXIST);
}

TEST_F(EarlyMappingsTest, lie_where_they_were_wished_while_that_is_free) {
    constexpr std::uintptr_t wish = 0x6a7'0000'0000;
    auto* const at =
        static_cast<char*>(early_.map(reinterpret_cast<void*>(wish), 8192, both, kind));
    EXPECT_EQ(number(at), wish);
    EXPECT_EQ(number(early_.map(at, 4096, both, kind)), EarlyMappings::base);
    EXPECT_TRUE(early_.owns(at + 8191));
    EXPECT_FALSE(early_.owns(at + 8192));
    at[8191] = 1;
    const EarlyMappings::Ranges ranges = early_.announce();
    EXPECT_EQ(ranges[1].address, wish);
    EXPECT_EQ(ranges[1].bytes, 8192u);
    early_.agree_on(ranges);
    EXPECT_TRUE(early_.is_agreed(ranges[1]));
    EXPECT_FALSE(early_.is_agreed({wish, 4096}));
    EXPECT_EQ(early_.give_over(ranges[1], true), 0);
    EXPECT_EQ(number(early_.map(reinterpret_cast<void*>(wish + (1 << 20)), 4096, both, kind)),
              EarlyMappings::base + 4096);
    munmap(at, 8192);
}

TEST_F(EarlyMappingsTest, of_others_hold_the_places_that_node_0_has_wished) {
    constexpr std::uintptr_t wish = 0x6a7'0000'0000;
    early_.announce();
    ASSERT_EQ(early_.give_over({wish, 8192}, false), 0);
    EXPECT_EQ(early_.give_over({wish, 8192}, false), EEXIST);
    munmap(reinterpret_cast<void*>(wish), 8192);
}

}  // namespace
}  // namespace hiroba::abi
