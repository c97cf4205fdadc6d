// SPDX-License-Identifier: BSD-3-Clause
// Role: real regions on one node with 1 to 4 threads: what a team does together.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <set>
#include <vector>

#include "omp/omp.hpp"

namespace hiroba::omp {
namespace {

class Team : public testing::TestWithParam<std::uint32_t> {
protected:
    Team() {
        auto made = Runtime::create({.threads_per_node = GetParam()});
        runtime_ = std::move(*made);
        runtime_->become_initial_thread();
        runtime_->icvs().threads = GetParam();
    }
    std::uint32_t threads() const { return GetParam(); }

    template <class Body>
    void parallel(Body body, std::uint32_t threads = 0) {
        runtime_->parallel([](void* b) { (*static_cast<Body*>(b))(); }, &body, threads);
    }
    std::unique_ptr<Runtime> runtime_;
};

INSTANTIATE_TEST_SUITE_P(OneNode, Team, testing::Values(1u, 2u, 3u, 4u));

TEST_P(Team, every_thread_runs_the_region_once_under_its_own_number) {
    for (int region = 0; region < 200; ++region) {
        std::array<std::atomic<int>, 4> runs{};
        parallel([&] {
            const TeamPosition place = runtime_->place();
            EXPECT_EQ(place.team_size, threads());
            EXPECT_EQ(place.level, 1u);
            EXPECT_EQ(place.active_level, threads() > 1 ? 1u : 0u);
            runs[place.thread].fetch_add(1);
        });
        for (std::uint32_t t = 0; t < threads(); ++t) ASSERT_EQ(runs[t].load(), 1);
        ASSERT_EQ(runtime_->place().level, 0u);
    }
    EXPECT_EQ(runtime_->regions_taken_part(), threads() > 1 ? 200u : 0u);
}

TEST_P(Team, team_sizes_may_differ_from_region_to_region) {
    for (std::uint32_t round = 0; round < 300; ++round) {
        const std::uint32_t wanted = 1 + round * 7 % 6;
        std::atomic<std::uint32_t> ran{0};
        parallel(
            [&] {
                ran.fetch_add(1);
                runtime_->barrier();
                EXPECT_EQ(ran.load(), wanted);
            },
            wanted);
        ASSERT_EQ(ran.load(), wanted);
    }
}

TEST_P(Team, nobody_passes_a_barrier_before_everybody_has_come) {
    constexpr int rounds = 100'000;
    std::array<std::atomic<int>, 4> at{};
    std::atomic<int> broken{0};
    parallel([&] {
        const std::uint32_t me = runtime_->place().thread;
        for (int round = 1; round <= rounds; ++round) {
            at[me].store(round, std::memory_order_relaxed);
            runtime_->barrier();
            for (std::uint32_t t = 0; t < threads(); ++t) {
                const int seen = at[t].load(std::memory_order_relaxed);
                if (seen < round || seen > round + 1) broken.fetch_add(1);
            }
        }
    });
    EXPECT_EQ(broken.load(), 0);
    for (std::uint32_t t = 0; t < threads(); ++t) EXPECT_EQ(at[t].load(), rounds);
}

TEST_P(Team, loops_of_every_schedule_run_each_iteration_once) {
    constexpr int count = 1000;
    for (const Schedule schedule : {Schedule::static_chunks, Schedule::dynamic, Schedule::guided,
                                    Schedule::automatic, Schedule::runtime}) {
        std::vector<std::atomic<int>> hits(count);
        parallel([&] {
            for (int repeat = 0; repeat < 100; ++repeat) {  // More loops than slots, nowait.
                Loop loop;
                loop.end = count;
                loop.schedule = schedule;
                loop.chunk = 3;
                runtime_->loop_start(loop);
                std::uint64_t first = 0, end = 0;
                while (runtime_->loop_next(&first, &end))
                    for (; first < end; ++first) hits[first].fetch_add(1);
                runtime_->loop_end(false);
            }
        });
        for (const auto& hit : hits) ASSERT_EQ(hit.load(), 100) << static_cast<int>(schedule);
    }
}

TEST_P(Team, a_combined_region_starts_inside_its_loop) {
    std::atomic<std::uint64_t> sum{0};
    const auto body = [&] {
        std::uint64_t first = 0, end = 0;
        while (runtime_->loop_next(&first, &end))
            for (; first < end; ++first) sum.fetch_add(first);
        runtime_->loop_end(false);
    };
    Loop loop;
    loop.end = 500;
    loop.schedule = Schedule::dynamic;
    for (int region = 0; region < 100; ++region)
        runtime_->parallel_loop([](void* b) { (*static_cast<decltype(body)*>(b))(); },
                                const_cast<void*>(static_cast<const void*>(&body)), 0, loop, 0);
    EXPECT_EQ(sum.load(), 100u * 499 * 500 / 2);
}

TEST_P(Team, one_thread_executes_a_single) {
    std::atomic<int> executed{0};
    parallel([&] {
        for (int i = 0; i < 1000; ++i)
            if (runtime_->single_start()) executed.fetch_add(1);
    });
    EXPECT_EQ(executed.load(), 1000);
}

TEST_P(Team, everybody_gets_what_the_executor_of_a_single_copies) {
    std::atomic<int> executed{0}, wrong{0};
    parallel([&] {
        for (int i = 0; i < 500; ++i) {
            int mine = i * 3;
            if (void* const copied = runtime_->single_copy_start()) {
                if (*static_cast<int*>(copied) != i * 3) wrong.fetch_add(1);
            } else {
                executed.fetch_add(1);
                runtime_->single_copy_end(&mine);
            }
            runtime_->barrier();
        }
    });
    EXPECT_EQ(executed.load(), 500);
    EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Team, ordered_regions_run_in_the_order_of_iterations) {
    for (const Schedule schedule : {Schedule::static_chunks, Schedule::dynamic, Schedule::guided})
        for (const std::uint64_t chunk : {0, 1, 4}) {
            std::vector<std::uint64_t> order;
            parallel([&] {
                Loop loop;
                loop.end = 200;
                loop.schedule = schedule;
                loop.chunk = chunk;
                loop.ordered = true;
                runtime_->loop_start(loop);
                std::uint64_t first = 0, end = 0;
                while (runtime_->loop_next(&first, &end))
                    for (; first < end; ++first) {
                        if (first % 10 == 3) continue;  // No ordered region in these.
                        runtime_->ordered_start();
                        order.push_back(first);
                        runtime_->ordered_end();
                    }
                runtime_->loop_end(true);
            });
            std::vector<std::uint64_t> expected;
            for (std::uint64_t i = 0; i < 200; ++i)
                if (i % 10 != 3) expected.push_back(i);
            ASSERT_EQ(order, expected) << static_cast<int>(schedule) << ' ' << chunk;
        }
}

TEST_P(Team, locks_exclude) {
    constexpr std::uint64_t rounds = 20'000;
    alignas(4) std::uint32_t words[2] = {};
    std::uint64_t counted[3] = {};  // By a lock each; plain, so that a hole in a lock loses some.
    parallel([&] {
        for (std::uint64_t i = 0; i < rounds; ++i) {
            const std::uint64_t key = reinterpret_cast<std::uintptr_t>(&words[i % 2]);
            runtime_->lock(key);
            ++counted[i % 2];
            runtime_->unlock(key);
            runtime_->lock(critical_key);
            ++counted[2];
            runtime_->unlock(critical_key);
        }
    });
    EXPECT_EQ(counted[0], rounds / 2 * threads());
    EXPECT_EQ(counted[1], rounds / 2 * threads());
    EXPECT_EQ(counted[2], rounds * threads());
}

TEST_P(Team, a_nested_lock_counts_its_holder_and_excludes_others) {
    alignas(4) std::uint32_t word = 0;
    const std::uint64_t key = reinterpret_cast<std::uintptr_t>(&word);
    EXPECT_EQ(runtime_->lock_nested(key), 1u);
    EXPECT_EQ(runtime_->try_lock_nested(key), 2u);
    std::atomic<int> intruders{0};
    parallel([&] {
        if (runtime_->place().thread != 0 && runtime_->try_lock_nested(key) != 0)
            intruders.fetch_add(1);
    });
    EXPECT_EQ(intruders.load(), 0);
    runtime_->unlock_nested(key);
    EXPECT_FALSE(runtime_->try_lock(key));
    runtime_->unlock_nested(key);
    EXPECT_TRUE(runtime_->try_lock(key));
    runtime_->unlock(key);
}

TEST_P(
    Team,
    an_inner_region_has_one_thread_where_one_level_is_active_and_leaves_the_outer_one_as_it_was) {
    std::atomic<int> wrong{0}, inner_runs{0};
    parallel(
        [&] {
            const TeamPosition outer = runtime_->place();
            parallel(
                [&] {
                    inner_runs.fetch_add(1);
                    const TeamPosition inner = runtime_->place();
                    if (inner.team_size != 1 || inner.thread != 0 || inner.level != 2)
                        wrong.fetch_add(1);
                    if (runtime_->ancestor_thread(1) != static_cast<int>(outer.thread))
                        wrong.fetch_add(1);
                    if (runtime_->team_size_at(1) != static_cast<int>(threads() + 1))
                        wrong.fetch_add(1);
                    if (runtime_->ancestor_thread(3) != -1 || runtime_->team_size_at(0) != 1)
                        wrong.fetch_add(1);
                    if (!runtime_->single_start()) wrong.fetch_add(1);
                    runtime_->barrier();
                },
                4);
            if (runtime_->place().team_size != outer.team_size) wrong.fetch_add(1);
            runtime_->barrier();
        },
        threads() + 1);
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(inner_runs.load(), static_cast<int>(threads() + 1));
}

TEST_P(Team, what_a_task_sets_stays_its_own) {
    runtime_->icvs().chunk = 17;
    std::atomic<int> wrong{0};
    parallel([&] {
        if (runtime_->icvs().chunk != 17) wrong.fetch_add(1);
        runtime_->icvs().chunk = 100 + runtime_->place().thread;
        runtime_->barrier();
        if (runtime_->icvs().chunk != 100 + runtime_->place().thread) wrong.fetch_add(1);
    });
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(runtime_->icvs().chunk, 17u);
}

TEST_P(Team, a_thread_the_program_made_leads_the_team_while_nobody_else_does) {
    std::atomic<int> inner{0};
    pthread_t thread;
    auto body = [&] {
        parallel([&] { inner.fetch_add(1); });
        runtime_->forget_thread();
    };
    pthread_create(
        &thread, nullptr,
        [](void* b) -> void* { return (*static_cast<decltype(body)*>(b))(), nullptr; }, &body);
    pthread_join(thread, nullptr);
    EXPECT_EQ(inner.load(), static_cast<int>(threads()));
}

}  // namespace
}  // namespace hiroba::omp
