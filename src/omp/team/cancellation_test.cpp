// SPDX-License-Identifier: BSD-3-Clause
// Role: cancelled regions of one node's teams: threads that wait leave, and the next region is
// whole.
// Also run with bugs planted in what these rest on (test/sim/planted): a thread that waits for ever
// is a failure that is told, not a hang.
#include "omp/team/cancellation.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "omp/omp.hpp"

namespace hiroba::omp {
namespace {

std::atomic<int> regions_begun{0};
/// CANCELLATION_SECONDS: where a bug is planted a hang is what is looked for, and 30 s are long.
unsigned patience_seconds() {
    const char* const given = std::getenv("CANCELLATION_SECONDS");
    return given == nullptr ? 30 : static_cast<unsigned>(std::atoi(given));
}

void say_that_it_hangs(int) {
    char line[100];
    const int length = std::snprintf(line, sizeof line,
                                     "first failure after %d regions: somebody waits for ever\n",
                                     regions_begun.load());
    if (write(STDOUT_FILENO, line, static_cast<std::size_t>(length)) < 0) _exit(2);
    _exit(1);
}

class CancelledTeam : public testing::TestWithParam<std::uint32_t> {
protected:
    CancelledTeam() {
        std::signal(SIGALRM, &say_that_it_hangs);
        alarm(patience_seconds());
        auto made = Runtime::create({.threads_per_node = 4});
        runtime_ = std::move(*made);
        runtime_->become_initial_thread();
        runtime_->icvs().threads = 4;
        runtime_->icvs().max_active_levels = 2;
        runtime_->environment().cancellation = true;
    }
    ~CancelledTeam() override { alarm(0); }

    /// GetParam(): at which level the region is.
    template <class Body>
    void parallel(Body body, std::uint32_t threads = 0) {
        const auto run = [&] {
            runtime_->parallel([](void* b) { (*static_cast<Body*>(b))(); }, &body, threads);
        };
        regions_begun.fetch_add(1);
        if (GetParam() == 1) return run();
        auto outer = [&] {
            if (runtime_->place().thread == 0) run();
        };
        runtime_->parallel([](void* b) { (*static_cast<decltype(outer)*>(b))(); }, &outer, 2);
    }
    std::unique_ptr<Runtime> runtime_;
};

INSTANTIATE_TEST_SUITE_P(Levels, CancelledTeam, testing::Values(1u, 2u));

TEST_P(CancelledTeam, is_left_by_those_who_wait_at_a_barrier) {
    for (std::uint32_t round = 0; round < 40; ++round) {
        std::atomic<int> came{0}, left{0};
        parallel([&] {
            if (runtime_->place().thread == round % 4) {
                usleep(round % 2 == 0 ? 3000 : 0);  // So that the others sleep.
                EXPECT_TRUE(runtime_->cancel(Cancel::parallel));
            } else {
                came.fetch_add(1);
                if (runtime_->barrier_cancel()) left.fetch_add(1);
            }
        });
        ASSERT_EQ(came.load(), 3);
        ASSERT_EQ(left.load(), 3);
    }
}

TEST_P(CancelledTeam, leaves_nothing_behind_for_the_next_one) {
    for (std::uint32_t round = 0; round < 60; ++round) {
        parallel([&] {
            const std::uint32_t me = runtime_->place().thread;
            // Each thread comes to other constructs, the last to more than there are slots.
            for (std::uint32_t i = 0; i < me * 30; ++i) runtime_->single_start();
            if (me == 0) runtime_->cancel(Cancel::parallel);
        });
        std::atomic<int> singles{0}, passed{0};
        parallel([&] {
            for (int i = 0; i < 100; ++i)
                if (runtime_->single_start()) singles.fetch_add(1);
            if (!runtime_->barrier_cancel()) passed.fetch_add(1);
            if (runtime_->cancellation_point(Cancel::parallel)) passed.fetch_add(100);
        });
        ASSERT_EQ(singles.load(), 100);
        ASSERT_EQ(passed.load(), 4);
    }
}

TEST_P(CancelledTeam, a_cancelled_loop_is_cancelled_up_to_its_barrier) {
    std::atomic<int> wrong{0}, learned{0};
    parallel([&] {
        for (int round = 0; round < 200; ++round) {
            if (runtime_->cancellation_point(Cancel::loop)) wrong.fetch_add(1);
            runtime_->barrier();
            if (runtime_->place().thread == static_cast<std::uint32_t>(round % 4))
                runtime_->cancel(Cancel::loop);
            while (!runtime_->cancellation_point(Cancel::loop)) usleep(1);
            learned.fetch_add(1);
            if (runtime_->barrier_cancel()) wrong.fetch_add(1);
        }
    });
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(learned.load(), 800);
}

TEST_P(CancelledTeam, nothing_is_cancelled_unless_the_environment_allows_it) {
    runtime_->environment().cancellation = false;
    std::atomic<int> wrong{0};
    parallel([&] {
        for (const Cancel what :
             {Cancel::parallel, Cancel::loop, Cancel::sections, Cancel::taskgroup})
            if (runtime_->cancel(what) || runtime_->cancellation_point(what)) wrong.fetch_add(1);
        if (runtime_->barrier_cancel()) wrong.fetch_add(1);
    });
    EXPECT_EQ(wrong.load(), 0);
}

TEST(Cancellation, counts_for_one_region_and_one_phase_whenever_it_comes) {
    Cancellation cancellation;
    cancellation.begin(5);
    cancellation.cancel_region(4);  // late
    EXPECT_FALSE(cancellation.region());
    cancellation.cancel_region(6);  // early
    EXPECT_FALSE(cancellation.region());
    cancellation.begin(6);
    EXPECT_TRUE(cancellation.region());
    cancellation.begin(7);
    EXPECT_FALSE(cancellation.region());
    cancellation.cancel_work(7, 3);
    EXPECT_FALSE(cancellation.work(2));
    EXPECT_TRUE(cancellation.work(3));
    cancellation.cancel_work(7, 1);  // late
    EXPECT_TRUE(cancellation.work(3));
    EXPECT_FALSE(cancellation.work(1));
    EXPECT_FALSE(cancellation.work(4));
}

}  // namespace
}  // namespace hiroba::omp
