// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/release_rhythm.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

constexpr std::uint64_t ms = 1'000'000;

TEST(ReleaseRhythm, leaves_alone_who_has_just_released_much) {
    ReleaseRhythm rhythm;
    rhythm.note(100);
    EXPECT_TRUE(rhythm.comes_soon(1, 1000 * ms));
    EXPECT_TRUE(rhythm.comes_soon(1, 1014 * ms));
    EXPECT_FALSE(rhythm.comes_soon(1, 1016 * ms));
    EXPECT_TRUE(rhythm.comes_soon(2, 1017 * ms));
}

TEST(ReleaseRhythm, never_waits_for_a_program_that_releases_nothing) {
    ReleaseRhythm rhythm;
    rhythm.note(0);
    EXPECT_FALSE(rhythm.comes_soon(1, 1000 * ms));
}

TEST(ReleaseRhythm, is_a_second_late_at_most) {
    ReleaseRhythm rhythm;
    rhythm.note(1'000'000);
    EXPECT_TRUE(rhythm.comes_soon(1, 1000 * ms));
    EXPECT_FALSE(rhythm.comes_soon(1, 2001 * ms));
}

TEST(ReleaseRhythm, counts_no_release_of_the_flusher_itself) {
    ReleaseRhythm rhythm;
    rhythm.note(100'000);
    EXPECT_TRUE(rhythm.comes_soon(1, 1000 * ms));
    EXPECT_FALSE(rhythm.comes_soon(1, 2001 * ms));
    rhythm.pass_over(2);
    EXPECT_FALSE(rhythm.comes_soon(2, 2002 * ms));
}

TEST(ReleaseRhythm, forgets_what_was_much) {
    ReleaseRhythm rhythm;
    rhythm.note(1000);
    for (int i = 0; i < 100; ++i) rhythm.note(1);
    EXPECT_TRUE(rhythm.comes_soon(1, 1000 * ms));
    EXPECT_FALSE(rhythm.comes_soon(1, 1002 * ms));
}

}  // namespace
}  // namespace hiroba::dsm
