// SPDX-License-Identifier: BSD-3-Clause
#include "net/provider/verbs/unfinished.hpp"

#include <gtest/gtest.h>

namespace hiroba::net::verbs {
namespace {

TEST(VerbsUnfinished, counts_a_packet_for_each_piece_and_one_for_nothing) {
    EXPECT_EQ(packets_of(0, 1024), 1u);
    EXPECT_EQ(packets_of(1, 1024), 1u);
    EXPECT_EQ(packets_of(1024, 1024), 1u);
    EXPECT_EQ(packets_of(1025, 1024), 2u);
    EXPECT_EQ(packets_of(8192, 1024), 8u);
}

TEST(VerbsUnfinished, repeats_what_the_other_end_has_not_seen_to_the_end) {
    // Packets 5 to 7 of a send; the other end waits for 7.
    EXPECT_EQ(fate_of(Change::sends, 8, 7), Fate::repeat);
    EXPECT_EQ(fate_of(Change::atomic, 8, 7), Fate::repeat);
    EXPECT_EQ(fate_of(Change::sends, 8, 8), Fate::carried_out);
    EXPECT_EQ(fate_of(Change::sends, 8, 9), Fate::carried_out);
}

TEST(VerbsUnfinished, reads_again_and_never_repeats_an_atomic_that_happened) {
    EXPECT_EQ(fate_of(Change::reads, 8, 7), Fate::repeat);
    EXPECT_EQ(fate_of(Change::reads, 8, 9), Fate::repeat);
    EXPECT_EQ(fate_of(Change::atomic, 8, 8), Fate::unknown);
}

TEST(VerbsUnfinished, holds_where_the_numbers_begin_again) {
    EXPECT_EQ(fate_of(Change::sends, 2, packet_mask), Fate::repeat);
    EXPECT_EQ(fate_of(Change::sends, 2, 1), Fate::repeat);
    EXPECT_EQ(fate_of(Change::sends, 2, 2), Fate::carried_out);
    EXPECT_EQ(fate_of(Change::sends, packet_mask, 1), Fate::carried_out);
}

}  // namespace
}  // namespace hiroba::net::verbs
