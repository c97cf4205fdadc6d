// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/protocol/timestamp.hpp"

#include <gtest/gtest.h>

#include "dsm/protocol/lease_word.hpp"

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

TEST(Lease, doubles_with_each_renewal_that_moved_nothing_up_to_a_bound) {
    EXPECT_EQ(lease_after(0, 10), 10u);
    EXPECT_EQ(lease_after(1, 10), 20u);
    EXPECT_EQ(lease_after(3, 10), 80u);
    EXPECT_LT(lease_after(255, 10), std::uint64_t{1} << 25);
    EXPECT_EQ(lease_after(255, std::uint64_t{1} << 30), std::uint64_t{1} << 30);
}

TEST(LeaseWord, says_until_when_and_whether_it_is_open) {
    EXPECT_TRUE(LeaseWord{}.is_open());
    EXPECT_EQ(LeaseWord::closed(Timestamp{7}).rts(), Timestamp{7});
    EXPECT_FALSE(LeaseWord::closed(Timestamp{7}).is_open());
    EXPECT_TRUE(LeaseWord::open(Timestamp{7}).is_open());
    EXPECT_FALSE(LeaseWord::open(Timestamp{7}).was_read());
    EXPECT_TRUE(LeaseWord::open_and_read(Timestamp{7}).was_read());
    EXPECT_EQ(LeaseWord::open_and_read(Timestamp{7}).rts(), Timestamp{7});
    EXPECT_TRUE(LeaseWord::closed(Timestamp{7}, true).was_read());
    EXPECT_FALSE(LeaseWord::closed(Timestamp{7}, true).is_open());
    EXPECT_EQ(LeaseWord::closed(Timestamp{7}, true).rts(), Timestamp{7});
    const auto kept =
        LeaseWord::from_raw(LeaseWord::closed(Timestamp{7}).raw() | LeaseWord::keeping_bit);
    EXPECT_TRUE(kept.is_kept());
    EXPECT_EQ(kept.rts(), Timestamp{7});
    EXPECT_EQ(LeaseWord::open(Timestamp{7}).raw() | LeaseWord::closing_bit,
              LeaseWord::closed(Timestamp{7}).raw());
}

}  // namespace
}  // namespace hiroba::dsm
