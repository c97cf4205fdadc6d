// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/atomic_passes.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/atomic_window.hpp"
#include "dsm/block/block_table.hpp"

namespace hiroba::dsm {
namespace {

constexpr AddressRange block{7 * page_bytes, page_bytes};

TEST(AtomicPasses, only_what_is_open_lets_by) {
    AtomicPasses passes;
    ThreadContext thread;
    EXPECT_FALSE(passes.enter(thread, block.address));  // not started
    passes.start_for_tests();
    EXPECT_FALSE(passes.enter(thread, block.address));
    passes.open(block.address + 8);
    EXPECT_TRUE(passes.enter(thread, block.address));
    passes.leave(thread);
    passes.open(block.address + AtomicPasses::places * page_bytes);  // the same place
    EXPECT_FALSE(passes.enter(thread, block.address));
    passes.open(block.address);
    passes.close(block);
    EXPECT_FALSE(passes.enter(thread, block.address));
}

TEST(AtomicPasses, a_place_is_one_threads) {
    AtomicPasses passes;
    passes.start_for_tests();
    passes.open(block.address);
    ThreadContext one, same;
    one.global_thread = 1;
    same.global_thread = 65;
    EXPECT_TRUE(passes.enter(one, block.address));
    EXPECT_FALSE(passes.enter(same, block.address));
    passes.await_none({block.end(), page_bytes});  // others do not keep it waiting
    passes.leave(one);
    EXPECT_TRUE(passes.enter(same, block.address));
}

TEST(AtomicPasses, the_child_of_a_fork_finds_all_closed) {
    AtomicPasses passes;
    passes.start_for_tests();
    passes.open(block.address);
    ThreadContext thread;
    const pid_t child = fork();
    if (child == 0) _exit(passes.enter(thread, block.address) ? 1 : 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(passes.enter(thread, block.address));
}

/// The C++ form of what a trampoline does, with the fence made by who closes.
bool goes_by(const AtomicPasses& passes, AtomicWindow& window, std::uintptr_t address) {
    const std::uint64_t page = address / page_bytes;
    window.page.store(page, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (passes.table()[page % AtomicPasses::places].load(std::memory_order_relaxed) == page)
        return true;
    window.page.store(0, std::memory_order_release);
    return false;
}

// As the engine uses it: who is in, when it was open, has left before the other goes on. Plain
// accesses, so that whoever overlaps loses counts.
TEST(AtomicPasses, who_closes_and_who_goes_by_never_overlap) {
    constexpr std::uint64_t rounds_min = 30'000;
    AtomicPasses passes;
    passes.start();
    if (!passes.are_usable()) GTEST_SKIP() << "no membarrier";
    passes.open(block.address);
    std::atomic<bool> over{false}, has_counted{false};
    alignas(64) volatile std::uint64_t counter = 0;
    std::uint64_t counted = 0, rounds = 0;
    std::thread thread{[&] {
        this_thread();  // makes its window
        AtomicWindow& window = *own_atomic_window;
        while (!over.load(std::memory_order_relaxed)) {
            if (!goes_by(passes, window, block.address)) continue;
            const std::uint64_t before = counter;
            // The other comes in the middle, also where both have one core.
            if (counted % 64 == 0) std::this_thread::yield();
            counter = before + 1, ++counted;
            window.page.store(0, std::memory_order_release);
            has_counted.store(true, std::memory_order_relaxed);
        }
    }};
    // On a full machine the other thread may have no core for long.
    for (; rounds < rounds_min || !has_counted.load(std::memory_order_relaxed); ++rounds) {
        passes.close(block);
        rounds % 2 == 0 ? passes.await_none(block) : passes.await_all();
        counter = counter + 1;
        passes.open(block.address);
    }
    over = true;
    thread.join();
    EXPECT_EQ(counter, counted + rounds);
    EXPECT_GT(counted, 0u);
}

TEST(AtomicWindow, counts_what_has_gone_by) {
    AtomicWindow window;
    window.given = 5;
    window.left = 2;
    EXPECT_EQ(window.made(), 3u);
    window.left = -1;  // one too many was refused
    EXPECT_EQ(window.settle(), 5u);
    EXPECT_EQ(window.made(), 0u);
}

TEST(AtomicUse, notes_the_last_release_whatever_comes_behind) {
    AtomicUse use;
    use.note_release(6);
    use.note_release(5);
    EXPECT_EQ(use.release, 6u);
}

}  // namespace
}  // namespace hiroba::dsm
