// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/guess/atomic_quantum.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hiroba::dsm {
namespace {

constexpr std::uint64_t us = 1'000, ms = 1'000'000;

/// A quantum with a clock of its own: work() passes time between atomics, bring() waits for bytes
/// of other nodes.
struct Clock {
    void work(std::uint64_t ns, std::uint64_t atomics) {
        now += ns;
        quantum.note_atomics(now, atomics);
    }
    void bring(std::uint64_t ns) {
        now += ns;
        quantum.note_slow(ns);
    }
    AtomicQuantum quantum;
    std::uint64_t now = 1'000 * ms;
};

/// `times` changes of hands of 20 us, with `atomics` in `apart` between two of them.
void meet(Clock& clock, int times, std::uint64_t apart, std::uint64_t atomics) {
    for (int i = 0; i < times; ++i) {
        clock.work(apart, atomics);
        clock.bring(20 * us);
        clock.quantum.note_met(clock.now);
    }
}

TEST(AtomicQuantum, atomics_are_contested_where_changes_of_hands_take_a_quarter_of_the_time) {
    Clock clock;
    meet(clock, 20, 10 * us, 100);
    EXPECT_TRUE(clock.quantum.is_contested(clock.now));
    EXPECT_FALSE(clock.quantum.is_contested(clock.now + 1'000 * ms)) << "they may end";
}

TEST(AtomicQuantum, they_are_not_where_they_are_few_or_far_between) {
    Clock seldom, far;
    meet(seldom, 40, 200 * us, 1'000);
    EXPECT_FALSE(seldom.quantum.is_contested(seldom.now)) << "a tenth of the time";
    meet(far, 40, 10 * us, 1);
    EXPECT_FALSE(far.quantum.is_contested(far.now)) << "the program computes between two";
}

TEST(AtomicQuantum, lasts_until_what_it_brought_was_a_fifth_of_it) {
    Clock clock;
    EXPECT_FALSE(clock.quantum.goes_on(clock.now)) << "the token is elsewhere";
    clock.quantum.begin(clock.now);
    clock.bring(10 * ms);
    clock.work(30 * ms, 1'000);
    EXPECT_TRUE(clock.quantum.goes_on(clock.now));
    clock.work(11 * ms, 1'000);
    EXPECT_FALSE(clock.quantum.goes_on(clock.now));
    clock.quantum.lose_token();
    clock.quantum.begin(clock.now);
    clock.work(90 * us, 1'000);
    EXPECT_TRUE(clock.quantum.goes_on(clock.now)) << "what the one before brought is paid";
    clock.work(20 * us, 1'000);
    EXPECT_FALSE(clock.quantum.goes_on(clock.now));
}

TEST(AtomicQuantum, ends_where_a_thread_only_brings) {
    Clock clock;
    clock.quantum.begin(clock.now);
    for (int i = 0; i < 1'999; ++i) {
        clock.bring(ms);
        clock.work(0, 1);
        ASSERT_TRUE(clock.quantum.goes_on(clock.now)) << i;
    }
    clock.bring(2 * ms);
    clock.work(0, 1);
    EXPECT_FALSE(clock.quantum.goes_on(clock.now));
}

TEST(AtomicQuantum, ends_where_no_atomic_comes_but_not_in_a_fault) {
    Clock clock;
    clock.quantum.begin(clock.now);
    clock.work(10 * us, 10);
    clock.now += 30 * us;
    EXPECT_FALSE(clock.quantum.goes_on(clock.now));
    meet(clock, 1, 1, 1);  // from now on slow parts are noted
    {
        const AtomicQuantum::SlowPart fault{clock.quantum};
        clock.now += 30 * us;
        EXPECT_TRUE(clock.quantum.goes_on(clock.now));
    }
}

TEST(AtomicQuantum, tells_of_what_was_held_in_it_once) {
    Clock clock;
    clock.quantum.note_held(1);
    clock.quantum.begin(clock.now);
    clock.quantum.note_held(5);
    clock.quantum.note_held(6);
    std::vector<BlockId> given;
    const auto give = [&](BlockId block) { given.push_back(block); };
    clock.quantum.each_held(give);
    clock.quantum.each_held(give);
    EXPECT_EQ(given, (std::vector<BlockId>{5, 6}));
}

}  // namespace
}  // namespace hiroba::dsm
