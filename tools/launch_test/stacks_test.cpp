// SPDX-License-Identifier: BSD-3-Clause
// Role: what a stack says its thread waits for.
#include "tools/run/stacks.hpp"

#include <gtest/gtest.h>

namespace hiroba::tools {
namespace {

TEST(Stacks, TheInnermostWaitThatSaysForWhomDecides) {
    EXPECT_EQ(waits_for({"syscall", "hiroba::net::Endpoint::wait(bool (*)(void*), void*)",
                         "hiroba::omp::TeamLink::receive(unsigned int)",
                         "hiroba::omp::TeamLink::finish_barrier()", "main._omp_fn.0"}),
              "the other nodes at a barrier");
    EXPECT_EQ(waits_for({"__sched_yield", "hiroba::dsm::BlockLock::wait_for_grant(unsigned int)",
                         "hiroba::dsm::Node::release_on_runtime_stack(hiroba::dsm::Others)",
                         "hiroba::omp::TeamLink::join()"}),
              "the lock of a block of memory");
}

TEST(Stacks, AWaitForSomebodyElsesSakeIsNamedOnlyAlone) {
    EXPECT_EQ(waits_for({"syscall", "hiroba::net::Endpoint::wait(bool (*)(void*), void*)", "work"}),
              "messages of other nodes");
}

TEST(Stacks, AThreadOfTheProgramWaitsForNothing) {
    EXPECT_EQ(waits_for({"read", "getchar", "main"}), "");
    EXPECT_EQ(waits_for({}), "");
}

}  // namespace
}  // namespace hiroba::tools
