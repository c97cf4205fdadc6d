// SPDX-License-Identifier: BSD-3-Clause
// Role: the chunk arithmetic against loops that are simply run.
#include "omp/loop/iteration_space.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <vector>

namespace hiroba::omp {
namespace {

Loop signed_loop(std::int64_t start, std::int64_t end, std::int64_t step) {
    Loop loop;
    loop.up = step > 0;
    loop.start = static_cast<std::uint64_t>(start);
    loop.end = static_cast<std::uint64_t>(end);
    loop.step = static_cast<std::uint64_t>(step);
    return loop;
}

Loop unsigned_loop(bool up, std::uint64_t start, std::uint64_t end, std::uint64_t step) {
    Loop loop;
    loop.up = up;
    loop.start = start;
    loop.end = end;
    loop.step = step;
    loop.is_unsigned = true;
    return loop;
}

std::vector<std::int64_t> run(std::int64_t start, std::int64_t end, std::int64_t step) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = start; step > 0 ? i < end : i > end; i += step) values.push_back(i);
    return values;
}

TEST(IterationSpace, numbers_every_small_signed_loop_as_running_it_does) {
    for (std::int64_t start = -7; start <= 7; ++start)
        for (std::int64_t end = -7; end <= 7; ++end)
            for (std::int64_t step = -5; step <= 5; ++step) {
                if (step == 0) continue;
                const auto expected = run(start, end, step);
                const IterationSpace space(signed_loop(start, end, step));
                ASSERT_EQ(space.count(), expected.size()) << start << ' ' << end << ' ' << step;
                for (std::size_t i = 0; i < expected.size(); ++i)
                    ASSERT_EQ(static_cast<std::int64_t>(space.value(i)), expected[i]);
                ASSERT_EQ(static_cast<std::int64_t>(space.value(expected.size())), end);
            }
}

TEST(IterationSpace, with_closed_bounds_has_the_iterations_of_the_loop_up_to_its_end) {
    for (std::int64_t start = -7; start < 8; ++start)
        for (std::int64_t end = -7; end < 8; ++end)
            for (const std::int64_t step : {1, 2, 5, -1, -3}) {
                Loop loop = signed_loop(start, end, step);
                loop.closed = true;
                const IterationSpace space(loop);
                std::uint64_t count = 0;
                for (std::int64_t i = start; step > 0 ? i <= end : i >= end; i += step, ++count)
                    ASSERT_EQ(static_cast<std::int64_t>(space.value(count)), i);
                ASSERT_EQ(space.count(), count);
                // The value behind the last iteration, one step off.
                ASSERT_EQ(static_cast<std::int64_t>(space.value(count)),
                          start + static_cast<std::int64_t>(count) * step);
            }
    Loop top = signed_loop(INT64_MAX - 4, INT64_MAX, 2);
    top.closed = true;
    EXPECT_EQ(IterationSpace(top).count(), 3u);
    Loop all = unsigned_loop(true, 1, UINT64_MAX, 1);
    all.closed = true;
    EXPECT_EQ(IterationSpace(all).count(), UINT64_MAX);
    EXPECT_EQ(IterationSpace(all).value(UINT64_MAX) - 1, UINT64_MAX);
}

TEST(IterationSpace, counts_loops_over_whole_types) {
    const IterationSpace up(signed_loop(INT64_MIN, INT64_MAX, 1));
    EXPECT_EQ(up.count(), UINT64_MAX);
    EXPECT_EQ(static_cast<std::int64_t>(up.value(UINT64_MAX - 1)), INT64_MAX - 1);

    const IterationSpace down(signed_loop(INT64_MAX, INT64_MIN, -1));
    EXPECT_EQ(down.count(), UINT64_MAX);

    const IterationSpace strides(signed_loop(INT64_MIN, INT64_MAX, INT64_MAX));
    EXPECT_EQ(strides.count(), 3u);
    EXPECT_EQ(static_cast<std::int64_t>(strides.value(2)), INT64_MAX - 1);

    const IterationSpace lowest_step(signed_loop(INT64_MAX, INT64_MIN, INT64_MIN));
    EXPECT_EQ(lowest_step.count(), 2u);
    EXPECT_EQ(static_cast<std::int64_t>(lowest_step.value(1)), -1);

    const IterationSpace full(unsigned_loop(true, 0, UINT64_MAX, 1));
    EXPECT_EQ(full.count(), UINT64_MAX);
    const IterationSpace backwards(unsigned_loop(false, UINT64_MAX, 0, 0 - std::uint64_t{2}));
    EXPECT_EQ(backwards.count(), UINT64_MAX / 2 + 1);
    EXPECT_EQ(backwards.value(1), UINT64_MAX - 2);
}

TEST(IterationSpace, an_unsigned_loop_beyond_the_signed_range_is_not_empty) {
    EXPECT_EQ(IterationSpace(unsigned_loop(true, 1, UINT64_MAX, UINT64_MAX - 1)).count(), 1u);
    EXPECT_EQ(IterationSpace(signed_loop(1, -1, 1)).count(), 0u);
}

TEST(Chunks, cover_every_count_once_and_in_order) {
    for (std::uint64_t count = 0; count < 40; ++count)
        for (std::uint64_t chunk = 1; chunk < 45; ++chunk) {
            std::uint64_t next = 0;
            for (std::uint64_t number = 0; number < chunk_count(count, chunk); ++number) {
                const IndexRange range = chunk_at(count, chunk, number);
                ASSERT_EQ(range.first, next);
                ASSERT_GT(range.end, range.first);
                ASSERT_LE(range.end - range.first, chunk);
                next = range.end;
            }
            ASSERT_EQ(next, count);
            ASSERT_TRUE(chunk_at(count, chunk, chunk_count(count, chunk)).empty());
        }
}

TEST(Chunks, do_not_wrap_at_the_top_of_the_range) {
    const IndexRange last = chunk_at(UINT64_MAX, UINT64_MAX - 1, 1);
    EXPECT_EQ(last, (IndexRange{UINT64_MAX - 1, UINT64_MAX}));
    EXPECT_TRUE(chunk_at(UINT64_MAX, UINT64_MAX - 1, 2).empty());
    EXPECT_EQ(chunk_count(UINT64_MAX, 1), UINT64_MAX);
}

TEST(StaticBlocks, are_contiguous_and_differ_by_at_most_one) {
    for (std::uint32_t threads = 1; threads < 9; ++threads)
        for (std::uint64_t count = 0; count < 60; ++count) {
            std::uint64_t next = 0;
            for (std::uint32_t thread = 0; thread < threads; ++thread) {
                const IndexRange range = static_block(count, threads, thread);
                ASSERT_EQ(range.first, next);
                const std::uint64_t size = range.end - range.first;
                ASSERT_TRUE(size == count / threads || size == count / threads + 1);
                next = range.end;
            }
            ASSERT_EQ(next, count);
        }
    EXPECT_EQ(static_block(UINT64_MAX, 3, 2).end, UINT64_MAX);
}

TEST(GuidedShares, shrink_to_the_smallest_chunk_and_never_pass_what_is_left) {
    EXPECT_EQ(guided_share(100, 4, 1), 25u);
    EXPECT_EQ(guided_share(10, 4, 7), 7u);
    EXPECT_EQ(guided_share(3, 4, 7), 3u);
    EXPECT_EQ(guided_share(UINT64_MAX, 1, 1), UINT64_MAX);
    EXPECT_EQ(guided_share(1, 4, UINT64_MAX), 1u);
}

}  // namespace
}  // namespace hiroba::omp
