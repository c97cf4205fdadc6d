// SPDX-License-Identifier: BSD-3-Clause
// Role: teams of cursors stepped by one thread in seeded orders: every schedule hands out every
// iteration once. (Ordered turns wait for other threads and are tested in runtime_test.cpp.)
#include "omp/loop/loop_cursor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace hiroba::omp {
namespace {

struct Handed {
    std::vector<std::int64_t> values;
    std::vector<std::uint64_t> chunk_sizes;
};

/// Runs one loop with `threads` cursors; `random` picks the one that takes the next chunk.
Handed run_loop(const Loop& loop, std::uint32_t threads, WordStore& words, std::uint64_t* sequence,
                std::mt19937& random) {
    std::vector<LoopCursor> team(threads);
    bool counted = false;
    for (std::uint32_t t = 0; t < threads; ++t)
        counted = team[t].begin(loop, threads, t, words, *sequence);
    Handed handed;
    std::vector<std::uint32_t> busy(threads);
    for (std::uint32_t t = 0; t < threads; ++t) busy[t] = t;
    while (!busy.empty()) {
        const std::size_t pick = random() % busy.size();
        LoopCursor& cursor = team[busy[pick]];
        std::uint64_t first = 0, end = 0;
        if (!cursor.next(&first, &end)) {
            EXPECT_FALSE(cursor.next(&first, &end)) << "an exhausted cursor found more";
            cursor.finish();
            busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(pick));
            continue;
        }
        const auto step = static_cast<std::int64_t>(loop.step);
        const auto last = static_cast<std::int64_t>(end);
        std::uint64_t size = 0;
        for (auto i = static_cast<std::int64_t>(first); step > 0 ? i < last : i > last; i += step) {
            handed.values.push_back(i);
            ++size;
        }
        handed.chunk_sizes.push_back(size);
    }
    if (counted) ++*sequence;
    return handed;
}

Loop loop_of(std::int64_t start, std::int64_t end, std::int64_t step, Schedule schedule,
             std::uint64_t chunk) {
    Loop loop;
    loop.up = step > 0;
    loop.start = static_cast<std::uint64_t>(start);
    loop.end = static_cast<std::uint64_t>(end);
    loop.step = static_cast<std::uint64_t>(step);
    loop.schedule = schedule;
    loop.chunk = chunk;
    return loop;
}

TEST(LoopCursor, every_schedule_hands_out_every_iteration_once) {
    std::mt19937 random(7);
    LocalWords words;
    std::uint64_t sequence = 0;
    for (const Schedule schedule :
         {Schedule::static_chunks, Schedule::dynamic, Schedule::guided, Schedule::automatic})
        for (std::uint32_t threads = 1; threads <= 5; ++threads)
            for (const std::uint64_t chunk : {0, 1, 2, 3, 7, 100})
                for (const std::int64_t step : {1, 2, 3, -1, -4})
                    for (std::int64_t count = 0; count < 25; ++count) {
                        const std::int64_t start = -5, end = start + count * (step > 0 ? 1 : -1);
                        std::vector<std::int64_t> expected;
                        for (std::int64_t i = start; step > 0 ? i < end : i > end; i += step)
                            expected.push_back(i);
                        Handed handed = run_loop(loop_of(start, end, step, schedule, chunk),
                                                 threads, words, &sequence, random);
                        std::sort(handed.values.begin(), handed.values.end());
                        std::sort(expected.begin(), expected.end());
                        ASSERT_EQ(handed.values, expected)
                            << "schedule " << static_cast<int>(schedule) << " threads " << threads
                            << " chunk " << chunk << " step " << step << " count " << count;
                    }
    EXPECT_GT(sequence, Workshare::slots * 10) << "slots were not reused";
}

TEST(LoopCursor, dynamic_chunks_have_the_size_asked_for_but_the_last) {
    std::mt19937 random(3);
    LocalWords words;
    for (std::uint32_t threads = 1; threads <= 3; ++threads) {
        std::uint64_t sequence = 0;
        LocalWords fresh;
        const Handed handed =
            run_loop(loop_of(0, 23, 1, Schedule::dynamic, 5), threads, fresh, &sequence, random);
        std::vector<std::uint64_t> sizes = handed.chunk_sizes;
        std::sort(sizes.begin(), sizes.end());
        EXPECT_EQ(sizes, (std::vector<std::uint64_t>{3, 5, 5, 5, 5}));
    }
}

TEST(LoopCursor, guided_chunks_never_grow_and_respect_the_smallest_size) {
    std::mt19937 random(5);
    LocalWords words;
    std::uint64_t sequence = 0;
    const Handed handed =
        run_loop(loop_of(0, 1000, 1, Schedule::guided, 10), 4, words, &sequence, random);
    EXPECT_EQ(handed.chunk_sizes.front(), 250u);
    for (std::size_t i = 1; i < handed.chunk_sizes.size(); ++i)
        EXPECT_LE(handed.chunk_sizes[i], handed.chunk_sizes[i - 1]);
    for (std::size_t i = 0; i + 1 < handed.chunk_sizes.size(); ++i)
        EXPECT_GE(handed.chunk_sizes[i], 10u);
}

TEST(LoopCursor, the_full_unsigned_range_is_cut_without_wrapping) {
    Loop loop;
    loop.end = UINT64_MAX;
    loop.is_unsigned = true;
    loop.chunk = std::uint64_t{1} << 62;
    for (const Schedule schedule : {Schedule::static_chunks, Schedule::dynamic, Schedule::guided}) {
        loop.schedule = schedule;
        LocalWords words;
        std::vector<LoopCursor> team(3);
        for (std::uint32_t t = 0; t < 3; ++t) team[t].begin(loop, 3, t, words, 0);
        std::uint64_t covered = 0, first = 0, end = 0;
        for (LoopCursor& cursor : team) {
            while (cursor.next(&first, &end)) covered += end - first;
            cursor.finish();
        }
        EXPECT_EQ(covered, UINT64_MAX) << static_cast<int>(schedule);
    }
}

TEST(Workshare, exactly_one_thread_is_first_and_the_slot_comes_back_clean) {
    LocalWords words;
    for (std::uint64_t sequence = 0; sequence < 3 * Workshare::slots; ++sequence) {
        int firsts = 0;
        for (int thread = 0; thread < 4; ++thread)
            firsts += Workshare(words, sequence).first_and_leave(4);
        ASSERT_EQ(firsts, 1);
    }
}

}  // namespace
}  // namespace hiroba::omp
