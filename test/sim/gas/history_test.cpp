// SPDX-License-Identifier: BSD-3-Clause
// Role: the checker itself: what it must accept and what it must not.
#include "sim/gas/history.hpp"

#include <gtest/gtest.h>

namespace hiroba::sim_test {
namespace {

using Kind = Access::Kind;

Access get(std::uint64_t begun, std::uint64_t ended, std::uint64_t result) {
    return {Kind::get, 0, begun, ended, 0, 0, result, false};
}
Access put(std::uint64_t begun, std::uint64_t ended, std::uint64_t value) {
    return {Kind::put, 1, begun, ended, value, 0, 0, false};
}
Access add(std::uint64_t begun, std::uint64_t ended, std::uint64_t value, std::uint64_t found) {
    return {Kind::add, 2, begun, ended, value, 0, found, false};
}

TEST(History, accepts_what_some_order_explains) {
    EXPECT_TRUE(is_linearizable({}, 0));
    EXPECT_TRUE(is_linearizable({put(1, 2, 7), get(3, 4, 7)}, 0));
    // While a put is under way, gets may see either, but once only.
    EXPECT_TRUE(is_linearizable({put(1, 10, 7), get(2, 3, 0), get(4, 5, 7)}, 0));
    EXPECT_TRUE(is_linearizable({add(1, 10, 1, 1), add(2, 9, 1, 0), get(11, 12, 2)}, 0));
}

TEST(History, refuses_stale_lost_and_torn_accesses) {
    EXPECT_FALSE(is_linearizable({put(1, 2, 7), get(3, 4, 0)}, 0));
    EXPECT_FALSE(is_linearizable({put(1, 10, 7), get(2, 3, 7), get(4, 5, 0)}, 0));
    EXPECT_FALSE(is_linearizable({add(1, 10, 1, 0), add(2, 9, 1, 0)}, 0));
    EXPECT_FALSE(is_linearizable({put(1, 2, 7), put(3, 4, 8), get(5, 6, 7)}, 0));
    EXPECT_FALSE(is_linearizable({put(1, 2, 7), get(3, 4, 9)}, 0));
}

TEST(History, lets_what_is_unknown_have_happened_or_not) {
    Access lost = put(1, ~std::uint64_t{0}, 7);
    lost.maybe = true;
    EXPECT_TRUE(is_linearizable({lost, get(3, 4, 0)}, 0));
    EXPECT_TRUE(is_linearizable({lost, get(3, 4, 0), get(5, 6, 7)}, 0));
    EXPECT_FALSE(is_linearizable({lost, get(3, 4, 7), get(5, 6, 0)}, 0));
}

TEST(History, knows_each_kind_of_atomic) {
    const Access swapped{Kind::swap, 0, 1, 2, 5, 0, 0, false};
    const Access exchanged{Kind::compare_swap, 0, 3, 4, 6, 5, 5, false};
    const Access refused{Kind::compare_swap, 0, 5, 6, 9, 5, 6, false};
    EXPECT_TRUE(is_linearizable({swapped, exchanged, refused, get(7, 8, 6)}, 0));
    EXPECT_FALSE(is_linearizable({swapped, exchanged, refused, get(7, 8, 9)}, 0));
}

}  // namespace
}  // namespace hiroba::sim_test
