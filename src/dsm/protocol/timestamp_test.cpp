// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/protocol/timestamp.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

TEST(LogicalTime, a_write_is_later_than_every_lease_given_out) {
    EXPECT_EQ(write_time(Timestamp{20}, Timestamp{0}), Timestamp{21});
    EXPECT_GT(write_time(Timestamp{20}, Timestamp{20}), Timestamp{20});
}

TEST(LogicalTime, a_write_is_not_before_min_wts) {
    EXPECT_EQ(write_time(Timestamp{20}, Timestamp{90}), Timestamp{90});
}

TEST(LogicalTime, a_read_never_shortens_a_lease) {
    EXPECT_EQ(read_until(Timestamp{5}, Timestamp{40}, Timestamp{0}, 10), Timestamp{40});
    EXPECT_EQ(read_until(Timestamp{35}, Timestamp{40}, Timestamp{0}, 10), Timestamp{45});
}

TEST(LogicalTime, a_lease_outlives_min_wts) {
    EXPECT_EQ(read_until(Timestamp{5}, Timestamp{15}, Timestamp{100}, 10), Timestamp{110});
}

TEST(LogicalTime, running_out_of_time_stops_the_node_instead_of_wrapping) {
    using Narrow = BasicTimestamp<std::uint8_t>;
    EXPECT_EQ(write_time(Narrow{254}, Narrow{0}), Narrow{255});
    EXPECT_DEATH(static_cast<void>(write_time(Narrow{255}, Narrow{0})), "logical time ran out");
    EXPECT_DEATH(static_cast<void>(read_until(Narrow{250}, Narrow{250}, Narrow{0}, 10)),
                 "logical time ran out");
}

}  // namespace
}  // namespace hiroba::dsm
