// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/node_threads.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "base/latch.hpp"
#include "base/thread_context.hpp"

namespace hiroba::omp {
namespace {

constexpr dsm::SpaceShape shape{
    .nodes = 2, .threads_per_node = 3, .stack_bytes = std::size_t{1} << 20};

thread_local int in_thread_storage = 5;
std::atomic<int> in_own_slice{0};
std::atomic<int> entered{0};

bool on_slice(const dsm::AddressRange& slice, const void* address) {
    return usable_stack(slice).contains(reinterpret_cast<std::uintptr_t>(address));
}

void look_around(std::uint32_t local_thread) {
    const dsm::AddressMap map(shape);
    const auto slice = map.stack_slice(3 + local_thread);
    const int on_stack = 0;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    const bool right = on_slice(slice, &on_stack) && on_slice(slice, &in_thread_storage) &&
                       on_slice(slice, &errno) && in_thread_storage == 5 &&
                       this_thread().global_thread == 3 + local_thread &&
                       sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGBUS) == 0;
    if (right) in_own_slice.fetch_add(1);
    if (entered.fetch_add(1) == 2) _exit(in_own_slice.load());
    for (;;) pause();
}

/// Node 1 of two, with plain memory in place of global memory. Ends by look_around().
void start_node_1() {
    const dsm::AddressMap map(shape);
    const auto stacks = shape.stack_bytes * shape.nodes * shape.threads_per_node;
    if (mmap(reinterpret_cast<void*>(map.main_range().address), stacks, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1,
             0) == MAP_FAILED) {
        _exit(100);
    }
    // The page below each stack: a thread that reached into it would die.
    for (std::uint32_t g = 0; g < 6; ++g) {
        mprotect(reinterpret_cast<void*>(map.stack_slice(g).address), page_bytes, PROT_NONE);
    }
    block_asynchronous_signals();
    if (!start_node_threads(map, NodeId{1}, map.shape().threads_per_node, &look_around)) _exit(101);
    for (;;) pause();
}

TEST(NodeThreads, StackAndThreadLocalStorageLieInTheSliceOfTheGlobalThread) {
    EXPECT_EXIT(start_node_1(), testing::ExitedWithCode(3), "");
}

TEST(NodeThreads, AStackTooSmallIsAnErrorThatNamesTheSetting) {
    dsm::SpaceShape small = shape;
    small.stack_bytes = 2 * page_bytes;
    const auto started =
        start_node_threads(dsm::AddressMap(small), NodeId{0}, 1, [](std::uint32_t) {});
    ASSERT_FALSE(started);
    EXPECT_NE(started.error().text.find("HIROBA_STACK"), std::string::npos);
}

}  // namespace
}  // namespace hiroba::omp
