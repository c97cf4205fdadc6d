// SPDX-License-Identifier: BSD-3-Clause
#include "net/bootstrap/port_range.hpp"

#include <gtest/gtest.h>

namespace hiroba::net {
namespace {

TEST(PortRange, reads_both_ends_and_nothing) {
    const auto range = port_range("20000-20063");
    ASSERT_TRUE(range);
    EXPECT_EQ(range->first, 20000);
    EXPECT_EQ(range->last, 20063);
    EXPECT_FALSE(range->any());
    ASSERT_TRUE(port_range(""));
    EXPECT_TRUE(port_range("")->any());
}

TEST(PortRange, refuses_what_is_no_range) {
    for (const char* const text :
         {"20000", "20000-", "-1", "0-5", "9-8", "7-7", "1-65536", "a-b", "1-2-3"}) {
        const auto range = port_range(text);
        ASSERT_FALSE(range) << text;
        EXPECT_EQ(range.error().kind, ErrorKind::usage);
        EXPECT_NE(range.error().text.find(text), std::string::npos);
    }
}

}  // namespace
}  // namespace hiroba::net
