// SPDX-License-Identifier: BSD-3-Clause
// Role: which thread does which iteration of a doacross loop, and real threads that wait for each
// other.
#include "omp/loop/doacross.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "omp/loop/loop_cursor.hpp"

namespace hiroba::omp {
namespace {

TEST(Doacross, the_owner_of_an_iteration_is_whom_the_loop_gives_it) {
    for (std::uint32_t threads = 2; threads < 6; ++threads)
        for (std::uint64_t count = 1; count < 30; ++count)
            for (std::uint64_t chunk = 0; chunk < 5; ++chunk)
                for (std::uint32_t thread = 0; thread < threads; ++thread) {
                    LocalWords words;
                    LoopCursor cursor;
                    Loop loop;
                    loop.end = count;
                    loop.chunk = chunk;
                    cursor.begin(loop, threads, thread, words, 0);
                    std::uint64_t first = 0, end = 0;
                    while (cursor.next(&first, &end))
                        for (; first < end; ++first)
                            ASSERT_EQ(Doacross::owner_of(first, count, chunk, threads), thread);
                }
}

TEST(Doacross, a_nest_too_large_to_number_is_refused) {
    LocalWords constructs, progress(Doacross::words);
    Doacross doacross;
    const std::uint64_t huge[] = {1ull << 40, 1ull << 30};
    EXPECT_FALSE(doacross.begin(huge, 0, 2, 0, constructs, progress, 0));
    const std::uint64_t large[] = {1ull << 30, 1ull << 30};
    EXPECT_TRUE(doacross.begin(large, 0, 2, 0, constructs, progress, 0));
}

TEST(Doacross, a_wave_front_runs_in_order_loop_after_loop) {
    constexpr std::uint32_t threads = 3;
    constexpr std::uint64_t side = 9, loops = 200;
    LocalWords constructs, progress(Doacross::words);
    std::uint64_t grid[side][side] = {};
    std::uint64_t expected[side][side] = {};
    const auto body = [&](std::uint32_t thread, std::uint64_t sequence) {
        const std::uint64_t counts[] = {side, side};
        Doacross doacross;
        ASSERT_TRUE(doacross.begin(counts, 1, threads, thread, constructs, progress, sequence));
        for (std::uint64_t i = thread; i < side; i += threads)
            for (std::uint64_t j = 0; j < side; ++j) {
                const std::uint64_t up[] = {i - 1, j}, at[] = {i, j};
                if (i > 0) doacross.wait(up);
                grid[i][j] = i == 0 || j == 0 ? sequence : grid[i - 1][j] + grid[i][j - 1];
                doacross.post(at);
            }
        doacross.finish();
    };
    for (std::uint64_t s = 0; s < loops; ++s) {
        std::vector<std::thread> team;
        for (std::uint32_t t = 0; t < threads; ++t) team.emplace_back(body, t, s);
        for (std::thread& thread : team) thread.join();
        for (std::uint64_t i = 0; i < side; ++i)
            for (std::uint64_t j = 0; j < side; ++j) {
                expected[i][j] = i == 0 || j == 0 ? s : expected[i - 1][j] + expected[i][j - 1];
                ASSERT_EQ(grid[i][j], expected[i][j]);
            }
    }
    for (std::uint32_t t = 0; t < threads; ++t) EXPECT_EQ(progress.load(t), 0u);
}

}  // namespace
}  // namespace hiroba::omp
