// SPDX-License-Identifier: BSD-3-Clause
// Role: the sizes of small blocks, all of them tried.
#include "dsm/heap/size_class.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace hiroba::dsm {
namespace {

TEST(SizeClass, every_size_fits_its_class_and_wastes_at_most_an_eighth) {
    for (std::size_t bytes = 1; bytes <= small_bytes_max; ++bytes) {
        const std::uint32_t size_class = size_class_of(bytes);
        const std::size_t got = class_bytes(size_class);
        ASSERT_GE(got, bytes);
        ASSERT_LE(got - bytes, std::max<std::size_t>(15, bytes / 8)) << bytes;
        ASSERT_EQ(got % 16, 0u);
        ASSERT_TRUE(size_class == 0 || class_bytes(size_class - 1) < bytes) << bytes;
        ASSERT_EQ(size_class_of(got), size_class);
    }
    EXPECT_LT(small_bytes_max, page_bytes);
}

}  // namespace
}  // namespace hiroba::dsm
