// SPDX-License-Identifier: BSD-3-Clause
// Role: which singles a node's threads have got, as other nodes ask.
#include "omp/team/single_turn.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/thread_context.hpp"
#include "omp/loop/workshare.hpp"
#include "omp/team/lost_singles.hpp"

namespace hiroba::omp {
namespace {

TEST(SingleTurn, tells_of_singles_that_a_thread_of_the_node_got_and_of_no_others) {
    SingleTurn turn;
    EXPECT_FALSE(turn.is_own_since(0));
    turn.ask();
    turn.lost();
    EXPECT_FALSE(turn.is_own_since(3));
    turn.ask();
    turn.won(3 + Workshare::slots);
    end_going_first(this_thread());
    EXPECT_TRUE(turn.is_own_since(3));
    EXPECT_TRUE(turn.is_own_since(3 + Workshare::slots));
    EXPECT_FALSE(turn.is_own_since(3 + 2 * Workshare::slots));
}

// Its answer may be on the way when another node, whose answer has come, asks already.
TEST(SingleTurn, waits_for_the_answer_of_a_thread_that_asks) {
    SingleTurn turn;
    turn.ask();
    std::atomic<bool> asks{false};
    std::thread executing([&] {
        while (!asks.load()) std::this_thread::yield();
        turn.won(5);
        end_going_first(this_thread());
    });
    asks.store(true);
    EXPECT_TRUE(turn.is_own_since(5));
    executing.join();
}

TEST(LostSingles, reach_from_the_first_to_the_last) {
    LostSingles lost;
    EXPECT_FALSE(lost.any());
    lost.add(7);
    lost.add(9);
    EXPECT_TRUE(lost.any());
    EXPECT_EQ(lost.first, 7u);
    EXPECT_EQ(lost.end, 10u);
}

}  // namespace
}  // namespace hiroba::omp
