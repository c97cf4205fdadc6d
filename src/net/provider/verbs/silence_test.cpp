// SPDX-License-Identifier: BSD-3-Clause
#include "net/provider/verbs/silence.hpp"

#include <gtest/gtest.h>

namespace hiroba::net::verbs {
namespace {

TEST(VerbsSilence, is_no_silence_for_who_read_the_clock_before_it_began) {
    Silence silence;
    silence.begin(1'000);
    EXPECT_FALSE(silence.is_longer_than(30, 999));
    EXPECT_FALSE(silence.is_longer_than(30, 1'000));
}

TEST(VerbsSilence, is_counted_from_what_was_first_waited_for) {
    Silence silence;
    EXPECT_FALSE(silence.is_longer_than(0, 1'000'000));
    silence.begin_once(1'000);
    silence.begin_once(1'020);
    EXPECT_FALSE(silence.is_longer_than(30, 1'030));
    EXPECT_TRUE(silence.is_longer_than(30, 1'031));
    silence.end();
    EXPECT_FALSE(silence.is_longer_than(30, 2'000'000));
}

}  // namespace
}  // namespace hiroba::net::verbs
