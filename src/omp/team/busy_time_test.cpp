// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/busy_time.hpp"

#include <gtest/gtest.h>

namespace hiroba::omp {
namespace {

TEST(BusyTime, is_unknown_at_first_and_where_regions_stay) {
    BusyTime busy{1, true};
    EXPECT_EQ(busy.least_ns(1000, {}), 0u);
    busy.note_region(2, 1, 1000, 0, {});
    EXPECT_EQ(busy.least_ns(500, {}), 2500u);
    busy.forget();
    EXPECT_EQ(busy.least_ns(1000, {}), 0u);
}

TEST(BusyTime, is_what_is_left_beside_waits_and_misses) {
    BusyTime busy{2, true};
    busy.note_region(2, 1, 100'000, 30'000, {.faults = 8, .first_touches = 3, .atomics = 10});
    EXPECT_EQ(busy.least_ns(10'000, {.faults = 1, .first_touches = 2}), 37'000u + 10'000u);
}

TEST(BusyTime, believes_what_was_measured_where_that_is_more_than_the_usual_price) {
    BusyTime busy{2, true};
    busy.note_region(2, 1, 1'000'000, 100'000, {10, 0, 0, 500'000});
    EXPECT_EQ(busy.least_ns(0, {}), 400'000u);
    busy.note_region(2, 1, 1'000'000, 100'000, {100, 0, 0, 500'000});
    EXPECT_EQ(busy.least_ns(0, {}), 300'000u);
}

// More than there is, since it is an estimate.
TEST(BusyTime, is_never_less_than_nothing) {
    BusyTime busy{2, false};
    busy.note_region(2, 1, 100'000, 90'000, {.faults = 5});
    EXPECT_EQ(busy.least_ns(10'000, {.faults = 7}), 1u);
}

// The threads of other nodes would share this one's processors.
TEST(BusyTime, is_as_many_times_as_much_as_processors_are_shared) {
    const auto least_ns = [](std::uint32_t processors, std::uint32_t size, std::uint32_t members) {
        BusyTime busy{processors, true};
        busy.note_region(size, members, 1000, 0, {});
        return busy.least_ns(100, {});
    };
    EXPECT_EQ(least_ns(1, 2, 1), 2100u);
    EXPECT_EQ(least_ns(2, 2, 1), 1100u);
    EXPECT_EQ(least_ns(2, 8, 2), 4100u);
    EXPECT_EQ(least_ns(2, 16, 4), 4100u);
}

// Misses and atomics are of all threads of the node.
TEST(BusyTime, shares_misses_among_the_threads) {
    BusyTime busy{8, true};
    busy.note_region(8, 4, 100'000, 0, {.faults = 40});
    EXPECT_EQ(busy.least_ns(0, {}), 40'000u);
}

}  // namespace
}  // namespace hiroba::omp
