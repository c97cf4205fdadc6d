// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/announced_atomics.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "dsm/block/block_table.hpp"

namespace hiroba::dsm {
namespace {

constexpr BlockId block = 7;

TEST(AnnouncedAtomics, a_place_is_one_threads) {
    AnnouncedAtomics announced;
    ThreadContext one, same, other;
    one.global_thread = 1;
    same.global_thread = 65;
    other.global_thread = 2;
    EXPECT_TRUE(announced.enter(one, block));
    EXPECT_FALSE(announced.enter(same, block + 1));
    EXPECT_TRUE(announced.enter(other, block + 1));
    announced.leave(one);
    EXPECT_TRUE(announced.enter(same, block + 1));
    announced.await_none(block);  // others do not keep it waiting
}

// As the engine uses it: who is in, when it was open, has left before the other goes on. Plain
// accesses, so that whoever overlaps loses counts.
TEST(AnnouncedAtomics, who_closes_and_who_is_there_never_overlap) {
    constexpr std::uint64_t rounds = 100'000;
    AnnouncedAtomics announced;
    std::atomic<bool> is_open{true}, over{false};
    alignas(64) volatile std::uint64_t counter = 0;
    std::uint64_t counted = 0;
    std::thread thread{[&] {
        ThreadContext context;
        while (!over.load(std::memory_order_relaxed)) {
            if (!announced.enter(context, block)) continue;
            if (is_open.load(std::memory_order_relaxed)) {
                const std::uint64_t before = counter;
                // The other comes in the middle, also where both have one core.
                if (counted % 64 == 0) std::this_thread::yield();
                counter = before + 1, ++counted;
            }
            announced.leave(context);
        }
    }};
    for (std::uint64_t round = 0; round < rounds; ++round) {
        is_open.store(false, std::memory_order_relaxed);
        announced.await_none(block);
        counter = counter + 1;
        is_open.store(true, std::memory_order_release);
    }
    over = true;
    thread.join();
    EXPECT_EQ(counter, counted + rounds);
    EXPECT_GT(counted, 0u);
}

TEST(AtomicUse, notes_the_last_release_whatever_comes_behind) {
    AtomicUse use;
    use.note_release(6);
    use.note_release(5);
    EXPECT_EQ(use.release, 6u);
}

}  // namespace
}  // namespace hiroba::dsm
