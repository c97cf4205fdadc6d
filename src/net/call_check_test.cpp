// SPDX-License-Identifier: BSD-3-Clause
#include "net/call_check.hpp"

#include <gtest/gtest.h>

namespace hiroba::net {
namespace {

constexpr Call barrier{Call::Kind::barrier}, leave{Call::Kind::leave};

TEST(CallCheck, CallsOfOtherNumbersAreNotCompared) {
    CallReferee referee;
    referee.take(NodeId{1}, 3, barrier);
    referee.take(NodeId{2}, 2, leave);
    referee.take(NodeId{2}, 4, leave);
    referee.take(NodeId{1}, 4, leave);
}

TEST(CallCheckDeathTest, ANodeThatLeavesWhileAnotherIsInABarrierIsNamed) {
    CallReferee referee;
    referee.take(NodeId{0}, 3, barrier);
    EXPECT_DEATH(referee.take(NodeId{1}, 3, leave),
                 "number 3: node 1 left: its network is being destroyed, while node 0 is in a "
                 "barrier");
}

TEST(CallCheck, ACallIsDescribedByWhatIsEqualOnEveryNode) {
    EXPECT_EQ(describe({Call::Kind::broadcast, 1, 8}), "is in a broadcast of 8 bytes from node 1");
    EXPECT_EQ(describe({Call::Kind::all_reduce, 4, 400}),
              "is in an all-reduce of 400 bytes, 4 a value");
    EXPECT_NE((Call{Call::Kind::all_gather, 0, 4}), (Call{Call::Kind::all_gather, 0, 8}));
}

}  // namespace
}  // namespace hiroba::net
