// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/own_releases.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace hiroba::dsm {
namespace {

TEST(OwnReleases, what_is_owed_has_not_begun) {
    OwnReleases releases;
    EXPECT_EQ(releases.begin(), 1u);
    EXPECT_EQ(releases.owe(), 2u);
    releases.end(1);
    EXPECT_TRUE(releases.has_debt());
    EXPECT_FALSE(releases.is_owed(3));
    releases.end(releases.begin());
    EXPECT_FALSE(releases.has_debt());
    EXPECT_EQ(releases.completed(), 2u);
}

TEST(OwnReleases, one_debt_is_owed_once_however_often_it_is_said) {
    OwnReleases releases;
    EXPECT_EQ(releases.owe(), 1u);
    EXPECT_EQ(releases.owe(), 1u);
    EXPECT_EQ(releases.owed(), 1u);
}

TEST(OwnReleases, a_release_behind_a_taking_counts_once) {
    OwnReleases releases;
    releases.begin();
    EXPECT_FALSE(releases.any_taken());
    const ReleaseNumber taken_in = releases.note_taken();
    EXPECT_TRUE(releases.any_taken());
    EXPECT_TRUE(releases.is_last(taken_in));
    releases.begin();
    EXPECT_FALSE(releases.any_taken());
    EXPECT_FALSE(releases.is_last(taken_in));
}

// A releaser runs beside threads that owe: each debt is found by the release it names.
TEST(OwnReleases, a_release_that_begins_meanwhile_finds_its_debt) {
    OwnReleases releases;
    constexpr ReleaseNumber rounds = 20'000;
    std::atomic<ReleaseNumber> found_max{0};
    std::thread releaser{[&] {
        for (ReleaseNumber i = 0; i < rounds; ++i) {
            const ReleaseNumber release = releases.begin();
            if (releases.is_owed(release)) found_max.store(release);
            releases.end(release);
        }
    }};
    ReleaseNumber owed = 0;
    while (releases.begun() < rounds) owed = releases.owe();
    releaser.join();
    // The last debts may name releases behind the end.
    if (owed <= rounds) {
        EXPECT_GE(found_max.load(), owed);
    }
    EXPECT_EQ(releases.begun(), rounds);
}

}  // namespace
}  // namespace hiroba::dsm
