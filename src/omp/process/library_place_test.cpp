// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/library_place.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hiroba::omp {
namespace {

std::uintptr_t map_anywhere(std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

bool lies_in(const dsm::AddressRange& range, std::uintptr_t address) {
    return address - range.address < range.bytes;
}

TEST(LibraryPlace, what_is_mapped_without_a_wish_goes_there_while_it_is_open_and_nowhere_else) {
    LibraryPlace place;
    ASSERT_TRUE(place.reserve());
    EXPECT_FALSE(lies_in(place.range(), map_anywhere(page_bytes)));

    const std::uintptr_t top = place.top();
    ASSERT_TRUE(place.open(top));
    const std::uintptr_t first = map_anywhere(5 * page_bytes);
    const std::uintptr_t second = map_anywhere(page_bytes);
    place.close();
    EXPECT_EQ(first, top - 5 * page_bytes);
    EXPECT_EQ(second, first - page_bytes);
    EXPECT_LT(place.top(), second);
    EXPECT_FALSE(lies_in(place.range(), map_anywhere(page_bytes)));
}

TEST(LibraryPlace, what_was_taken_back_is_given_to_nobody_again) {
    LibraryPlace place;
    const auto reserved = place.reserve();
    if (!reserved) GTEST_SKIP() << reserved.error().text;  // the former test's place is kept
    ASSERT_TRUE(place.open(place.top()));
    const std::uintptr_t gone = map_anywhere(page_bytes);
    place.close();
    munmap(reinterpret_cast<void*>(gone), page_bytes);
    place.close();
    EXPECT_EQ(mmap(reinterpret_cast<void*>(gone), page_bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
              MAP_FAILED);
}

TEST(LibraryPlace, a_top_above_what_is_used_is_refused) {
    LibraryPlace place;
    const auto reserved = place.reserve();
    if (!reserved) GTEST_SKIP() << reserved.error().text;
    const std::uintptr_t top = place.top();
    ASSERT_TRUE(place.open(top));
    map_anywhere(page_bytes);
    place.close();
    const auto refused = place.open(top);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text.find("in the way"), std::string::npos);
}

}  // namespace
}  // namespace hiroba::omp
