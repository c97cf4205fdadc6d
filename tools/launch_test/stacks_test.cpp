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

TEST(Stacks, AWaitForALockIsNamedAsSuch) {
    EXPECT_EQ(waits_for({"syscall", "hiroba::net::Endpoint::wait(bool (*)(void*), void*)",
                         "hiroba::dsm::(anonymous namespace)::Table::lock(unsigned long)"}),
              "a lock of the program or of the runtime");
}

TEST(Stacks, AThreadOfTheProgramWaitsForNothing) {
    EXPECT_EQ(waits_for({"read", "getchar", "main"}), "");
    EXPECT_EQ(waits_for({}), "");
}

CallFrame runtime(const char* function) { return {0x10, function, "libhiroba.so"}; }
CallFrame program(const char* function) { return {0x20, function, "a.out"}; }

TEST(Stacks, AThreadOfTheProgramWaitsInTheCallThatItMade) {
    const auto wait = wait_of({runtime("syscall"), runtime("hiroba::net::Endpoint::wait(bool)"),
                               runtime("hiroba::abi::RemoteFiles::await_reply(hiroba::NodeId)"),
                               runtime("read"), program("work(int)"), program("main")});
    ASSERT_TRUE(wait);
    EXPECT_EQ(wait->what, "in read");
    EXPECT_EQ(wait->address, 0x1fu);
}

TEST(Stacks, AThreadOfTheProgramInOurRuntimeWaitsForWhatThatWaitsFor) {
    const auto wait = wait_of({runtime("syscall"), runtime("hiroba::omp::TeamLink::join()"),
                               runtime("hiroba::omp::RuntimeCore::parallel()"), program("main"),
                               runtime("hiroba::abi::run_thread(unsigned int)")});
    ASSERT_TRUE(wait);
    EXPECT_EQ(wait->what, "for the other nodes at the end of the region");
}

TEST(Stacks, AThreadOfOursAndOneThatComputesWaitInNoCallOfTheProgram) {
    EXPECT_FALSE(wait_of({runtime("syscall"), runtime("hiroba::net::Endpoint::serve()"),
                          runtime("hiroba::abi::take_over()"), program("_start")}));
    EXPECT_FALSE(wait_of({runtime("syscall"), runtime("hiroba::omp::RuntimeCore::work()")}));
    EXPECT_FALSE(wait_of({program("work"), runtime("hiroba::omp::RuntimeCore::work()")}));
    EXPECT_FALSE(wait_of({}));
}

}  // namespace
}  // namespace hiroba::tools
