// SPDX-License-Identifier: BSD-3-Clause
// Role: what threads learn from their yields.
#include "net/wait_budget.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "base/short_slice.hpp"
#include "base/test_parts/thread_slice.hpp"

namespace hiroba::net {
namespace {

/// A turn that somebody who computes has used up is not given again soon.
TEST(CoreShortage, gives_no_turn_for_some_time_after_one_that_was_used_up) {
    constexpr std::uint64_t slice_ns = 3'000'000, now_ns = 1'000'000'000;
    CoreShortage shortage;
    shortage.turn_took(CoreShortage::turn_max_ns, now_ns);
    EXPECT_TRUE(shortage.may_give_turn(now_ns));
    shortage.turn_took(slice_ns, now_ns);
    EXPECT_FALSE(shortage.may_give_turn(now_ns + slice_ns * CoreShortage::turn_rest - 1));
    EXPECT_TRUE(shortage.may_give_turn(now_ns + slice_ns * CoreShortage::turn_rest));
}

/// A thread that yields to one that computes has short slices from then on.
TEST(WaitBudget, asks_for_short_slices_where_another_thread_computes) {
    std::atomic<bool> over{false};
    const auto on_first_core = [] {
        cpu_set_t allowed, first;
        sched_getaffinity(0, sizeof allowed, &allowed);
        CPU_ZERO(&first);
        for (int core = 0; CPU_COUNT(&first) == 0; ++core) {
            if (CPU_ISSET(core, &allowed)) CPU_SET(core, &first);
        }
        ASSERT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
    };
    std::thread waits([&] {
        on_first_core();
        // Slices are inherited, so this thread's are made others than those it is to ask for.
        ask_for_short_slices(ShortSlice::of_program);
        const double wanted = slice_of_this_thread();
        ask_for_short_slices(ShortSlice::of_service);
        if (slice_of_this_thread() == wanted) GTEST_SKIP() << "no slices told, or before 6.12";
        CoreShortage shortage;
        std::thread computes([&] {
            while (!over.load(std::memory_order_relaxed)) {
            }
        });
        for (int i = 0; i < 20; ++i) {
            WaitBudget budget{shortage};
            while (budget.pass()) {
            }
        }
        over = true;
        computes.join();
        EXPECT_EQ(slice_of_this_thread(), wanted);
    });
    waits.join();
}

}  // namespace
}  // namespace hiroba::net
