// SPDX-License-Identifier: BSD-3-Clause
#include "abi/kmp/static_loop.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "omp/loop/doacross.hpp"

namespace hiroba::abi::kmp {
namespace {

/// Runs a member's part as clang's code does, and counts what it meets.
template <class T>
void run(Sched kind, T lower, T upper, std::make_signed_t<T> step, std::make_signed_t<T> chunk,
         Member member, std::map<T, std::pair<int, Unsigned>>& hits, int& lasts) {
    const StaticShare<T> share = static_share(kind, lower, upper, step, chunk, member);
    const auto beyond = [&](T a, T b) { return step > 0 ? a > b : a < b; };
    const auto within = [&](T value) { return !beyond(value, upper); };
    const bool repeats = kind == Sched::static_chunked || kind == Sched::distribute_chunked;
    lasts += share.has_last;
    std::int64_t from = share.lower, to = share.upper;
    do {
        const std::int64_t end = beyond(static_cast<T>(to), upper) ? std::int64_t{upper} : to;
        for (std::int64_t i = from; step > 0 ? i <= end : i >= end; i += step) {
            auto& hit = hits[static_cast<T>(i)];
            ++hit.first;
            hit.second = member.number;
        }
        from += share.stride;
        to += share.stride;
    } while (repeats && from >= std::numeric_limits<T>::min() &&
             from <= std::numeric_limits<T>::max() && within(static_cast<T>(from)));
}

template <class T>
void try_loop(Sched kind, T lower, T upper, std::make_signed_t<T> step,
              std::make_signed_t<T> chunk) {
    for (Unsigned members = 1; members < 7; ++members) {
        std::map<T, std::pair<int, Unsigned>> hits;
        int lasts = 0;
        for (Unsigned number = 0; number < members; ++number)
            run(kind, lower, upper, step, chunk, {number, members}, hits, lasts);
        std::uint64_t index = 0;
        const std::uint64_t trips = trip_count(lower, upper, step);
        for (std::int64_t i = lower; step > 0 ? i <= upper : i >= upper; i += step, ++index) {
            const auto at = hits.find(static_cast<T>(i));
            ASSERT_NE(at, hits.end()) << i;
            ASSERT_EQ(at->second.first, 1) << i;
            const std::uint64_t chunk_of = kind == Sched::static_chunked ? chunk : 0;
            if (kind == Sched::static_chunked || kind == Sched::static_blocks) {
                ASSERT_EQ(at->second.second,
                          omp::Doacross::owner_of(index, trips, chunk_of, members));
            }
        }
        ASSERT_EQ(index, trips);
        ASSERT_EQ(hits.size(), trips);
        ASSERT_EQ(lasts, trips != 0);
    }
}

TEST(StaticShare, DealsOutEveryIterationOnceToWhomADoacrossLoopExpects) {
    for (const Sched kind : {Sched::static_blocks, Sched::static_chunked,
                             Sched::static_balanced_chunked, Sched::distribute_chunked})
        for (const int step : {1, 2, 5, -1, -3})
            for (const int distance : {0, 1, 2, 5, 6, 13, 40})
                for (const int chunk : {1, 2, 4, 8, 100}) {
                    const int way = step > 0 ? distance : -distance;
                    try_loop<Int>(kind, 3, 3 + way, step, chunk);
                    try_loop<Unsigned>(kind, 50, static_cast<Unsigned>(50 + way), step, chunk);
                    try_loop<Long>(kind, -3, -3 + way, step, chunk);
                }
}

TEST(StaticShare, OfNoIterationIsWhatTheLoopWas) {
    const auto share = static_share<Int>(Sched::static_blocks, 5, 4, 1, 1, {1, 3});
    EXPECT_EQ(share.lower, 5);
    EXPECT_EQ(share.upper, 4);
    EXPECT_FALSE(share.has_last);
}

TEST(StaticShare, AtTheEdgesOfTheTypeNobodyGetsMore) {
    constexpr Int top = std::numeric_limits<Int>::max(), bottom = std::numeric_limits<Int>::min();
    try_loop<Int>(Sched::static_blocks, top - 3, top, 1, 1);
    try_loop<Int>(Sched::static_chunked, top - 3, top, 1, 2);
    try_loop<Int>(Sched::static_blocks, bottom + 3, bottom, -1, 1);
    try_loop<Unsigned>(Sched::static_blocks, 0, 2, 1, 1);
    try_loop<Unsigned>(Sched::static_blocks, 2, 0, -1, 1);
    EXPECT_EQ(trip_count<Int>(bottom, top, 1), std::uint64_t{1} << 32);
    EXPECT_EQ(trip_count<UnsignedLong>(0, ~UnsignedLong{0} - 1, 1), ~UnsignedLong{0});
}

TEST(Schedules, AreToldApartWithTheirModifiers) {
    EXPECT_EQ(schedule_of(35).kind, Sched::dynamic);
    EXPECT_FALSE(schedule_of(35).ordered);
    EXPECT_EQ(schedule_of(35 | 1 << 30).kind, Sched::dynamic);
    EXPECT_EQ(schedule_of(33 | 1 << 29).kind, Sched::static_chunked);
    EXPECT_EQ(schedule_of(66).kind, Sched::static_blocks);
    EXPECT_TRUE(schedule_of(66).ordered);
    EXPECT_EQ(schedule_of(69).kind, Sched::runtime);
    EXPECT_TRUE(schedule_of(69).ordered);
    EXPECT_EQ(schedule_of(92).kind, Sched::distribute_blocks);
    EXPECT_FALSE(schedule_of(92).ordered);
    EXPECT_EQ(schedule_of(163).kind, Sched::dynamic);  // "no merge"
    EXPECT_TRUE(schedule_of(195).ordered);
}

}  // namespace
}  // namespace hiroba::abi::kmp
